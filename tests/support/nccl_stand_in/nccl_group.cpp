// Entry points of NCCL: groups.
#include "entry.hpp"

using namespace nccl_stand_in;

ncclResult_t ncclGroupStart() {
  const auto text = [] { return "depth " + std::to_string(Group::get().depth + 1); };
  return entry("ncclGroupStart", {.text = text}, [](const Context&) {
    ++Group::get().depth;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  const auto text = [] { return "depth " + std::to_string(Group::get().depth - 1); };
  return entry("ncclGroupEnd", {.text = text}, [](const Context& context) {
    Group& group = Group::get();
    if (group.depth == 0) return context.refuse(ncclInvalidUsage, "no group has been started");
    if (--group.depth > 0) return ncclSuccess;
    return group.end(context);
  });
}
