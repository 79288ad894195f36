"""Ten thousand deltas, or ten million deletes, in one compaction: it holds no more at a time than for a tenth of them."""

from dataclasses import replace

import pytest

from benchmarks.compaction_memory import HEAP, SPEC, watched, write_delete_deltas, write_deletes, write_deltas

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "written", "more"), [("minor", write_deltas, 0), ("major", write_delete_deltas, 1)])
def test_memory_and_open_files_do_not_grow_with_the_deltas(tmp_path, kind, written, more):
    """COMP-W33: deltas of inserts are merged one after the other, the rows of so many deltas of deletes are sorted."""
    held = {}
    for count in (1000, 10_000):
        location = tmp_path / str(count)
        location.mkdir()
        written(location, count)
        mark = count + more
        held[count] = watched(replace(SPEC, kind=kind, location=str(location), highest_write_id=mark,
                                      write_ids=f"bench.t:{mark}:9223372036854775807::"), tmp_path)
        assert [path.name.partition("_v")[0] for path in location.glob("*_v*")] == [
            f"delta_0000001_{mark:07d}" if kind == "minor" else f"base_{mark:07d}"]

    few, many = held[1000], held[10_000]
    assert many.files < few.files + 50
    assert many.heap < few.heap + 100
    assert many.tasks < HEAP + 400, "what the virtual machine takes beside its heap"


@pytest.mark.timeout(1200)
def test_the_driver_holds_no_deletes(tmp_path):
    """A bucket has ten million rows, more than a task could sort without a spill: they are merged in order."""
    heaps = []
    for count in (1_000_000, 10_000_000):
        location = tmp_path / str(count)
        location.mkdir()
        write_deletes(location, count)
        heaps.append(watched(replace(SPEC, kind="major", location=str(location), highest_write_id=2,
                                     write_ids="bench.t:2:9223372036854775807::"), tmp_path).heap)

    assert heaps[1] < heaps[0] + 100
