"""RayRolloutEngine on two nodes, one of which is killed: every request is answered once, as on one machine."""

import pytest

import doorstep

pytest.importorskip("ray")

from tests.pkg.ray import clusters
from tests.pkg.ray.clusters import SIMULATOR, WAIT, facts, network, nodes_of_actors, played_here, taken, wait_until

from doorstep.ray import RayConfig, RayRolloutEngine

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much


@pytest.mark.slow
def test_a_killed_node_changes_no_result(tmp_path):
    net = network()
    expected = played_here(clusters.requests_of_all_kinds(doorstep.load_policy(net)) * 16)
    with (
        clusters.two_nodes(tmp_path) as cluster,
        RayRolloutEngine(SIMULATOR, RayConfig(num_actors=2, chunk=16)) as engine,
    ):
        assert wait_until(lambda: len(nodes_of_actors()) == 2)
        ids = engine.submit(clusters.requests_of_all_kinds(engine.publish(net)) * 16)
        results = engine.get_outputs(timeout=WAIT)
        assert len(results) < len(ids) / 2
        cluster.remove_node(cluster.second, allow_graceful=False)
        results += taken(engine)
        assert [actor.ready is None for actor in engine._pool._actors] == [True, False]  # no core is left for another
    assert sorted(result.id for result in results) == ids
    assert sorted(map(facts, results)) == expected
