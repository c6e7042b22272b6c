// libcuda.so.1 of a driver that is older than any CUDA this builds with: it answers what version it is and nothing
// else. On the path of libraries it takes the place of the machine's driver, so what an old driver leads to is seen on
// every machine, with or without a GPU.
#include <cstring>

namespace {
constexpr int kSuccess = 0, kNotFound = 500;  // CUresult
}

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return kSuccess;
}

int cuInit(unsigned) { return kSuccess; }

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int*) {
  *function = nullptr;
  if (std::strcmp(name, "cuDriverGetVersion") == 0) *function = reinterpret_cast<void*>(cuDriverGetVersion);
  if (std::strcmp(name, "cuInit") == 0) *function = reinterpret_cast<void*>(cuInit);
  if (std::strcmp(name, "cuGetProcAddress") == 0) *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  return *function == nullptr ? kNotFound : kSuccess;
}

}  // extern "C"
