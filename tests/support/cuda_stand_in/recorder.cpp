#include "entry.hpp"

namespace cuda_stand_in {

std::string Call::text() const {
  std::string line = function + '(';
  if (event >= 0) line += "event " + std::to_string(event);
  if (event >= 0 && stream >= 0) line += ", ";
  if (stream >= 0) line += "stream " + std::to_string(stream);
  line += ')';
  if (bytes > 0 || !detail.empty()) line += ':';
  if (bytes > 0) line += ' ' + std::to_string(bytes) + " bytes";
  if (!detail.empty()) line += ' ' + detail;
  return line;
}

Recording::Recording() : outer_(ThreadState::get().recording) {
  ThreadState::get().recording = this;
}

Recording::~Recording() { ThreadState::get().recording = outer_; }

std::string Recording::text(std::string_view function) const {
  std::string lines;
  for (const Call& call : calls_)
    if (function.empty() || call.function == function) lines += call.text() + '\n';
  return lines;
}

int Recording::number_of(cudaStream_t stream) {
  if (stream == nullptr) return 0;
  return streams_.try_emplace(stream, int(streams_.size()) + 1).first->second;
}

int Recording::number_of(cudaEvent_t event) {
  return events_.try_emplace(event, int(events_.size()) + 1).first->second;
}

}  // namespace cuda_stand_in
