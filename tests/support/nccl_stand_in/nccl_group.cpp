// Entry points of NCCL: groups.
#include <utility>

#include "entry.hpp"

using namespace nccl_stand_in;

ncclResult_t ncclGroupStart() {
  return entry("ncclGroupStart", {}, [](const Context& context) {
    if (std::exchange(Group::get().begun, true))
      return context.fault(ncclInvalidUsage, "groups within groups are not there");
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return entry("ncclGroupEnd", {}, [](const Context& context) {
    Group& group = Group::get();
    if (!group.begun) return context.refuse(ncclInvalidUsage, "no group has been started");
    return group.end(context);
  });
}
