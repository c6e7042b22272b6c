#include "fast/subject.hpp"

ASSAY_EXPORT_SUBJECT(assay::fast::FastSubject)
