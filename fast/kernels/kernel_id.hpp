// Kernel ids: "<op>_<form>_<storage>@sm_90", e.g. "ssd_chunked_f32@sm_90". kernel_id<"ssd_chunked", float> is that
// text, made at compile time, so an id cannot name a storage type other than the one launched.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::fast {

template <size_t kLength>
struct IdText {
  char text[kLength] = {};
  constexpr IdText(const char (&from)[kLength]) {  // implicit: lets a string literal be the template argument
    for (size_t i = 0; i < kLength; ++i) text[i] = from[i];
  }
  constexpr std::string_view view() const { return {text, kLength - 1}; }
};

// Specialised once for each storage type that kernels are instantiated for.
template <typename T>
struct StorageName;
template <>
struct StorageName<float> {
  static constexpr std::string_view kText = "f32";
};

template <IdText kStem, typename T>
struct KernelIdText {
  static constexpr std::string_view kTarget = "@sm_90";
  static constexpr size_t kLength = kStem.view().size() + 1 + StorageName<T>::kText.size() + kTarget.size();
  char text[kLength] = {};
  constexpr KernelIdText() {
    size_t at = 0;
    for (char c : kStem.view()) text[at++] = c;
    text[at++] = '_';
    for (char c : StorageName<T>::kText) text[at++] = c;
    for (char c : kTarget) text[at++] = c;
  }
};
template <IdText kStem, typename T>
inline constexpr KernelIdText<kStem, T> kKernelIdText{};

template <IdText kStem, typename T>
inline constexpr std::string_view kernel_id{kKernelIdText<kStem, T>.text, KernelIdText<kStem, T>::kLength};

}  // namespace assay::fast
