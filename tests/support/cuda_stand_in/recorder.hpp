// Records the entry points that a thread calls, with their arguments, for tests to compare.
//
//     Recording recording;
//     all_gather(..);
//     CHECK(recording.text() ==
//           "cudaEventRecord(event 1, stream 1)\n"
//           "cudaStreamWaitEvent(stream 2, event 1)\n"
//           "ncclAllGather(stream 2): 1024 float32\n");
//
// Streams and events are numbered in the order in which a recording first sees them; the default
// stream is stream 0. Calls that fail are recorded too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace cuda_stand_in {

struct Call {
  std::string function;
  int stream = -1;        ///< number; -1 if the call has none
  int event = -1;         ///< number; -1 if the call has none
  std::size_t bytes = 0;  ///< copied, filled, allocated; 0 for other calls
  std::string detail;     ///< other arguments: a direction, the shape of a launch

  std::string text() const;
  bool operator==(const Call&) const = default;
};

/// Records this thread's calls during its lifetime. Of nested recordings, the innermost records.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;  // the thread holds its address

  const std::vector<Call>& calls() const { return calls_; }
  /// One line for each call; only calls of `function` if it is given.
  std::string text(std::string_view function = {}) const;
  void clear() { calls_.clear(); }

  /// The number of the stream or event in this recording.
  int number_of(cudaStream_t stream);
  int number_of(cudaEvent_t event);

  void add(Call call) { calls_.push_back(std::move(call)); }

 private:
  Recording* outer_;
  std::vector<Call> calls_;
  std::map<const void*, int> streams_;
  std::map<const void*, int> events_;
};

}  // namespace cuda_stand_in
