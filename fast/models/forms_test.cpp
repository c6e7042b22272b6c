#include "fast/models/forms.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"

namespace assay::fast {
namespace {

TEST(Forms, UnknownOpOrFormIsUnsupported) {
  EXPECT_NO_THROW(check_forms({{"ssd", "chunked"}, {"causal_conv1d", "update"}, {"selective_scan", "sequence"}}));
  EXPECT_THROW(check_forms({{"ssd", "recurrent"}}), UnsupportedError);
  EXPECT_THROW(check_forms({{"linear", "chunked"}}), UnsupportedError);
}

TEST(Forms, ByDefaultOnlyAWarmSingleColumnIsAnUpdate) {
  const FormChoice choice = form_choice({{"ssd", "update"}}, "causal_conv1d");
  EXPECT_EQ(choice, FormChoice::kByCall);
  EXPECT_EQ(form_of_call(choice, 1, true), SequenceForm::kUpdate);
  EXPECT_EQ(form_of_call(choice, 1, false), SequenceForm::kSequence);
  EXPECT_EQ(form_of_call(choice, 2, true), SequenceForm::kSequence);
}

TEST(Forms, AskedForByNameHoldsForEveryCall) {
  const FormChoice chunked = form_choice({{"ssd", "chunked"}}, "ssd"), update = form_choice({{"ssd", "update"}}, "ssd");
  for (bool is_warm : {false, true})
    for (int64_t columns : {1, 5}) {
      EXPECT_EQ(form_of_call(chunked, columns, is_warm), SequenceForm::kSequence);
      EXPECT_EQ(form_of_call(update, columns, is_warm), SequenceForm::kUpdate);
    }
}

}  // namespace
}  // namespace assay::fast
