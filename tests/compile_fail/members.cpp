// Members that a kind of value cannot have. @see tests/grad/test_members.cpp
#include <cleave/grad/backward.hpp>
#include <cleave/grad/local.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/spmd/traced.hpp>

using namespace cleave;

struct dp : axis {};
using Mesh = DeviceMesh<Host, dp>;
using Rows = Tracked<DTensor<float, 2, Mesh, Placements<Shard<0>>>>;
using Whole = Tracked<DTensor<float, 2, Mesh, Placements<Replicate>>>;

index_t control(const Traced<float, 0>& s, const Rows& x, const Whole& w) {
  return s.size() + x.to_local().size() + w.to_local(Replicate{}).size() + x.full_tensor().size();
}

#ifdef item_of_a_traced_value  // says: cleave: a traced value has no elements, so no item()
float item(const Traced<float, 0>& x) { return x.item(); }
#endif

#ifdef item_of_a_tracked_traced_value  // says: cleave: a traced value has no elements, so no item()
float tracked_item(const Tracked<Traced<float, 0>>& x) { return x.item(); }
#endif

#ifdef local_part_of_a_traced_value  // says: cleave: a traced value has no elements, so no to_local()
auto local(const Traced<float, 2>& x) { return x.to_local(); }
#endif

#ifdef local_part_of_a_tracked_traced_value  // says: cleave: a traced value has no elements, so no to_local()
auto tracked_local(const Tracked<Traced<float, 2>>& x) { return x.to_local(Replicate{}); }
#endif

#ifdef full_tensor_of_a_traced_value  // says: cleave: a traced value has no elements, so no full_tensor()
auto full(const Traced<float, 2>& x) { return x.full_tensor(); }
#endif

#ifdef placements_of_a_traced_value  // says: cleave: a traced value has no placements()
auto placements_of(const Tracked<Traced<float, 2>>& x) { return x.placements(); }
#endif

#ifdef local_part_without_placements_of_its_gradient  // says: cleave: to_local: state the placements of the gradient, one per mesh axis
auto part(const Whole& x) { return x.to_local(); }
#endif
