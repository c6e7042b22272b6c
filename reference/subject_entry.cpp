#include "reference/subject.hpp"

ASSAY_EXPORT_SUBJECT(assay::reference::ReferenceSubject)
