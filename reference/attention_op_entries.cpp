#include "reference/attention_op_entries.hpp"

#include <cmath>

#include "cases/spec/error.hpp"
#include "cases/spec/op_attributes.hpp"
#include "reference/ops/activations.hpp"
#include "reference/ops/attention.hpp"
#include "reference/ops/rotary.hpp"

namespace assay::reference {

NamedOutputs run_rotary(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "BLHD"), positions = in.ids("positions", "BL");
  const RotaryShape shape = rotary_attributes(in, in.size('D'));
  in.finish();
  return {{"y", reference::rotary(x.transpose(1, 2), positions, shape).transpose(1, 2)}};
}

NamedOutputs run_attention(OpInputs& in, const std::string&) {
  const at::Tensor q = in.tensor("q", "BLHD"), k = in.tensor("k", "BGTD"), v = in.tensor("v", "BGTE");
  const at::Tensor mask = in.find_mask("mask", "BT", q);
  const double scale = in.attribute("scale", 1 / std::sqrt(static_cast<double>(in.size('D'))));
  in.attribute("capacity", 0);  // of a cache, which this is not
  in.finish();
  if (in.size('H') % in.size('G') != 0)
    throw InputError("op attention, k",
                     std::to_string(in.size('G')) + " key heads do not divide " + std::to_string(in.size('H')));
  if (in.size('L') > in.size('T'))
    throw InputError("op attention, k",
                     std::to_string(in.size('T')) + " columns for " + std::to_string(in.size('L')) + " queries");
  return {{"y", reference::attention(q.transpose(1, 2), k, v, mask.defined() ? mask.to(at::kBool) : mask, scale)}};
}

NamedOutputs run_kv_append(OpInputs& in, const std::string&) {
  const at::Tensor k = in.tensor("k", "BLGD"), v = in.tensor("v", "BLGE");
  const at::Tensor k_cache = in.tensor("k_cache", "BGTD").clone(), v_cache = in.tensor("v_cache", "BGTE").clone();
  const double past = in.attribute("past", 0);
  in.finish();
  if (!(past >= 0 && past <= static_cast<double>(in.size('T') - in.size('L'))) || past != std::floor(past))
    throw InputError("op kv_append, past", std::to_string(past) + " leaves no room for " +
                                               std::to_string(in.size('L')) + " of " + std::to_string(in.size('T')) +
                                               " columns");
  k_cache.narrow(2, static_cast<int64_t>(past), in.size('L')).copy_(k.transpose(1, 2));
  v_cache.narrow(2, static_cast<int64_t>(past), in.size('L')).copy_(v.transpose(1, 2));
  return {{"k_cache", k_cache}, {"v_cache", v_cache}};
}

NamedOutputs run_gate(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "THW"), gate = in.tensor("gate", "THW");
  in.finish();
  return {{"y", x * at::sigmoid(gate)}};
}

NamedOutputs run_feed_forward(OpInputs& in, const std::string&) {
  const at::Tensor gate = in.tensor("gate", "TF"), up = in.find("up", "TF");
  const auto activation = static_cast<Activation>(kind_attribute(in, "feed_forward", "activation", 3));
  const double multiplier = in.attribute("multiplier", 1);
  in.finish();
  const at::Tensor active = activate(gate * multiplier, activation);
  return {{"y", up.defined() ? active * up : active}};
}

NamedOutputs run_scaled_add(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TW"), residual = in.find("residual", "TW");
  const double scale = in.attribute("scale", 1);
  in.finish();
  return {{"y", residual.defined() ? residual + x * scale : x * scale}};
}

NamedOutputs run_shared_gate(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TW"), gate = in.tensor("gate", "T"), residual = in.find("residual", "TW");
  in.finish();
  const at::Tensor gated = at::sigmoid(gate).unsqueeze(-1) * x;
  return {{"y", residual.defined() ? residual + gated : gated}};
}

NamedOutputs run_argmax(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TV");
  in.finish();
  // By a stable sort: the lowest of several largest, which at::argmax does not promise.
  const at::Tensor places = std::get<1>(x.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true)).select(-1, 0);
  return {{"y", places.to(x.scalar_type())}};
}

NamedOutputs run_gather_rows(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "RIW"), source = in.ids("source", "B");
  in.finish();
  if (source.min().item<int64_t>() < 0 || source.max().item<int64_t>() >= in.size('R'))
    throw InputError("op gather_rows, source", "leaves the " + std::to_string(in.size('R')) + " rows");
  return {{"y", x.index_select(0, source)}};
}

NamedOutputs run_gather_columns(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TX"), index = in.ids("index", "W");
  in.finish();
  if (index.min().item<int64_t>() < 0 || index.max().item<int64_t>() >= in.size('X'))
    throw InputError("op gather_columns, index", "leaves the " + std::to_string(in.size('X')) + " columns");
  return {{"y", x.index_select(1, index)}};
}

}  // namespace assay::reference
