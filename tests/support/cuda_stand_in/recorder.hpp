// Writes down which entry points a thread calls, with what, so that tests can compare.
//
//     Recording recording;
//     all_gather(..);
//     CHECK(recording.text() ==
//           "cudaEventRecord(event 1, stream 1)\n"
//           "cudaStreamWaitEvent(stream 2, event 1)\n"
//           "ncclAllGather(stream 2): 1024 float32\n");
//
// Streams and events are numbered in the order in which a recording meets them; the default stream
// is stream 0. Calls that fail are recorded too.
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
  std::string detail;     ///< what else tells calls apart: a direction, the shape of a launch

  std::string text() const;
  bool operator==(const Call&) const = default;
};

/// Records this thread's calls as long as it lives. The innermost one records.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;  // the thread knows it by its address

  const std::vector<Call>& calls() const { return calls_; }
  /// A line for each call. Calls of the named function only, if one is given.
  std::string text(std::string_view function = {}) const;
  void clear() { calls_.clear(); }

  /// The number under which the stream or event appears here.
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
