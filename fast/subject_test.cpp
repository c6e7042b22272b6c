#include "fast/subject.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "fast/device/device.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {
namespace {

TEST(FastModels, AreKnownFamiliesEachOnce) {
  std::vector<std::string> names = network_names();
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_NO_THROW(model_spec(name)) << name;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(FastModels, EachHasItsSourceFileAndEachSourceFileItsLine) {
  const std::vector<std::string> names = network_names();
  const std::filesystem::path folder = std::filesystem::path(ASSAY_ROOT) / "fast/models";
  for (const std::string& name : names) EXPECT_TRUE(std::filesystem::exists(folder / (name + ".cpp"))) << name;
  for (const ModelSpec& spec : model_specs())
    if (std::filesystem::exists(folder / (std::string(spec.name) + ".cpp"))) {
      EXPECT_NE(std::find(names.begin(), names.end(), spec.name), names.end()) << spec.name;
    }
}

TEST(FastModels, AnUnknownFamilyIsUnsupported) {
  ModelConfig config;
  config.model = "transformer";
  EXPECT_THROW(check_network(config), UnsupportedError);
}

TEST(FastSubject, TellsItsCapabilitiesOnAnyMachine) {
  const FastSubject subject;
  const Capabilities& is = subject.capabilities();
  EXPECT_EQ(is.name, "fast");
  EXPECT_EQ(is.models, network_names());
  EXPECT_EQ(is.models.size(), model_specs().size());
  EXPECT_EQ(is.forms.at("ssd").front(), "chunked");
  EXPECT_EQ(is.forms.at("causal_conv1d"), (std::vector<std::string>{"sequence", "update"}));
  EXPECT_TRUE(is.is_accelerated);
  EXPECT_EQ(is.device.starts_with("none: "), !device_facts().is_usable) << is.device;
  ASSERT_EQ(is.versions.size(), 2u);
  EXPECT_TRUE(is.versions[0].starts_with("cuda 1")) << is.versions[0];
}

TEST(FastSubject, WithoutADeviceOpsAreUnsupportedWithTheReason) {
  if (device_facts().is_usable) GTEST_SKIP() << "this machine has " << device_facts().name;
  FastSubject subject;
  OpCall call;
  call.op = "linear";
  for (int i = 0; i < 2; ++i) try {
      subject.run_op(call);
      FAIL() << "an op ran without a device";
    } catch (const UnsupportedError& error) {
      EXPECT_NE(std::string(error.what()).find(device_facts().reason), std::string::npos) << error.what();
    }
  EXPECT_THROW(subject.time_op(call, 1), UnsupportedError);
}

}  // namespace
}  // namespace assay::fast
