"""Resource plans (CAT-W1), as the metastore of Hive 4.2.0 answers; where that one breaks, what it means to answer."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T

ACTIVE, ENABLED, DISABLED = T.WMResourcePlanStatus.ACTIVE, T.WMResourcePlanStatus.ENABLED, T.WMResourcePlanStatus.DISABLED
Wrong, Missing, Taken, Refused, Meta = (
    T.InvalidObjectException, T.NoSuchObjectException, T.AlreadyExistsException, T.InvalidOperationException, T.MetaException)


class Plans:
    """The calls in short."""

    def __init__(self, hive):
        self.hive = hive

    def create(self, name, copy=None, ns="default", **fields):
        self.hive.create_resource_plan(T.WMCreateResourcePlanRequest(T.WMResourcePlan(name=name, ns=ns, **fields), copy))

    def get(self, name, ns="default"):
        return self.hive.get_resource_plan(T.WMGetResourcePlanRequest(name, ns)).resourcePlan

    def alter(self, name, ns="default", /, *, enable=None, force=None, replace=None, **changes):
        plan = T.WMNullableResourcePlan(**changes)
        return self.hive.alter_resource_plan(T.WMAlterResourcePlanRequest(name, plan, enable, force, replace, ns)).fullResourcePlan

    def all(self, ns="default"):
        found = self.hive.get_all_resource_plans(T.WMGetAllResourcePlanRequest(ns)).resourcePlans
        return {plan.name: plan.status for plan in found}

    def active(self, ns="default"):
        found = self.hive.get_active_resource_plan(T.WMGetActiveResourcePlanRequest(ns)).resourcePlan
        return found and found.plan.name

    def problems(self, name):
        found = self.hive.validate_resource_plan(T.WMValidateResourcePlanRequest(name, "default"))
        return found.errors, found.warnings

    def drop(self, name):
        self.hive.drop_resource_plan(T.WMDropResourcePlanRequest(name, "default"))

    def pool(self, path, share=0.5, queries=2, policy=None, plan="p"):
        self.hive.create_wm_pool(T.WMCreatePoolRequest(T.WMPool(plan, path, share, queries, policy, "default")))

    def alter_pool(self, path, plan="p", **changes):
        pool = T.WMNullablePool(resourcePlanName=plan, ns="default", **{"poolPath": path, **changes})
        self.hive.alter_wm_pool(T.WMAlterPoolRequest(pool, path))

    def drop_pool(self, path, plan="p"):
        self.hive.drop_wm_pool(T.WMDropPoolRequest(plan, path, "default"))

    def trigger(self, name, when="a > 1", action="KILL", plan="p", **fields):
        self.hive.create_wm_trigger(T.WMCreateTriggerRequest(T.WMTrigger(plan, name, when, action, ns="default", **fields)))

    def alter_trigger(self, name, plan="p", **fields):
        self.hive.alter_wm_trigger(T.WMAlterTriggerRequest(T.WMTrigger(plan, name, ns="default", **fields)))

    def drop_trigger(self, name, plan="p"):
        self.hive.drop_wm_trigger(T.WMDropTriggerRequest(plan, name, "default"))

    def triggers(self, plan="p"):
        found = self.hive.get_triggers_for_resourceplan(T.WMGetTriggersForResourePlanRequest(plan, "default")).triggers
        return [(each.triggerName, each.triggerExpression, each.actionExpression, each.isInUnmanaged) for each in found]

    def link(self, trigger, path, plan="p", *, drop=None):
        self.hive.create_or_drop_wm_trigger_to_pool_mapping(
            T.WMCreateOrDropTriggerToPoolMappingRequest(plan, trigger, path, drop, "default"))

    def map(self, kind, name, path=None, ordering=None, plan="p", *, update=None):
        mapping = T.WMMapping(plan, kind, name, path, ordering, "default")
        self.hive.create_or_update_wm_mapping(T.WMCreateOrUpdateMappingRequest(mapping, update))

    def unmap(self, kind, name, plan="p"):
        self.hive.drop_wm_mapping(T.WMDropMappingRequest(T.WMMapping(plan, kind, name, ns="default")))

    def pools(self, plan="p"):
        return {pool.poolPath: (pool.allocFraction, pool.queryParallelism, pool.schedulingPolicy) for pool in self.get(plan).pools}

    def mappings(self, plan="p"):
        return [(each.entityType, each.entityName, each.poolPath, each.ordering) for each in self.get(plan).mappings or ()]

    def links(self, plan="p"):
        return [(each.pool, each.trigger) for each in self.get(plan).poolTriggers or ()]


@pytest.fixture
def plans(hive):
    return Plans(hive)


@pytest.fixture
def p(plans):
    plans.create("p")
    return plans


def refused(error, call, *args, **options):
    with pytest.raises(error):
        call(*args, **options)


def test_a_new_plan_is_disabled_and_has_a_pool(plans):
    plans.create(" A ", queryParallelism=6, status=ACTIVE, defaultPoolPath="elsewhere")
    assert plans.get("a") == T.WMFullResourcePlan(
        T.WMResourcePlan("a", DISABLED, 6, "default", "default"),
        [T.WMPool("a", "default", 1.0, 6, None, "default")])
    plans.create("b c-d!")
    assert plans.pools("B c-D!") == {"default": (1.0, 4, None)}
    assert plans.all() == {"a": DISABLED, "b c-d!": DISABLED}


def test_a_namespace_has_plans_of_its_own(plans):
    plans.create("p")
    plans.create("p", ns="Other")
    plans.create("old", ns=None)
    assert plans.all("OTHER") == {"p": DISABLED}
    assert plans.all(None) == plans.all() == {"old": DISABLED, "p": DISABLED}
    assert plans.get("p", "other").plan.ns == "other"
    assert plans.all("nobody's") == {}
    for ns in ("default", "other"):
        plans.alter("p", ns, status=ACTIVE, enable=True)
    assert (plans.active(), plans.active("other"), plans.active("nobody's")) == ("p", "p", None)


@pytest.mark.parametrize(("name", "fields", "error"), [
    ("P", {}, Taken), (" ", {}, Wrong), ("n", {"queryParallelism": 0}, Wrong), ("n", {"copy": "nope"}, Meta)])
def test_a_wrong_plan_is_not_created(p, name, fields, error):
    refused(error, p.create, name, **fields)
    assert p.all() == {"p": DISABLED}


def test_a_copy_has_all_but_the_status(p):
    p.pool("q", 0.5, 2, "fifo")
    p.trigger("t")
    p.link("t", "q")
    p.map("user", "u", "q", 3)
    p.alter("p", isSetDefaultPoolPath=True, defaultPoolPath="q", isSetQueryParallelism=True, queryParallelism=9)
    p.alter_pool("default", allocFraction=0.5)
    p.alter("p", status=ACTIVE, enable=True)
    p.create("copy", "P", queryParallelism=1)
    assert p.get("copy").plan == T.WMResourcePlan("copy", DISABLED, 9, "q", "default")
    assert (p.pools("copy"), p.triggers("copy"), p.mappings("copy"), p.links("copy")) == (
        p.pools(), p.triggers(), p.mappings(), p.links())


def test_a_plan_is_enabled_then_activated_then_replaced_by_another(p):  # CAT-286
    p.create("q")
    assert p.alter("p", status=ENABLED) is None
    assert p.alter("p", status=ENABLED) is None
    refused(Refused, p.alter, "q", status=ACTIVE)
    assert p.alter("p", status=ACTIVE).plan.status == ACTIVE
    assert p.active() == "p"
    for status in (ENABLED, DISABLED):
        refused(Refused, p.alter, "p", status=status)
    assert p.alter("q", status=ACTIVE, enable=True).plan.name == "q"
    assert p.all() == {"p": ENABLED, "q": ACTIVE}
    refused(Meta, p.drop, "q")
    assert p.alter("q", status=ENABLED, force=True) is None
    assert p.alter("q", status=ACTIVE) is not None
    assert p.alter(None, status=DISABLED, force=True) is None
    assert p.all() == {"p": ENABLED, "q": DISABLED}
    refused(Missing, p.alter, None, status=DISABLED)
    p.drop("q")
    p.drop("p")
    refused(Missing, p.drop, "p")
    assert p.active() is None


def test_only_a_disabled_plan_is_edited(p):  # CAT-286
    p.pool("q")
    p.drop_pool("q")
    p.trigger("t")
    p.alter("p", status=ENABLED)
    before = p.get("p")
    refused(Refused, p.alter, "p", name="other")
    refused(Refused, p.alter, "p", isSetQueryParallelism=True, queryParallelism=3)
    refused(Refused, p.drop_pool, "default")
    refused(Refused, p.drop_trigger, "t")
    refused(Refused, p.unmap, "user", "u")
    for call in (lambda: p.pool("q"), lambda: p.alter_pool("default"), lambda: p.trigger("u"), lambda: p.alter_trigger("t"),
                 lambda: p.map("user", "u"), lambda: p.link("t", "default")):
        refused(Meta, call)
    assert p.get("p") == before


def test_a_disabled_plan_is_edited(p):
    p.alter("p", name=" Q ", isSetQueryParallelism=True, queryParallelism=7, isSetDefaultPoolPath=True)
    assert p.get("q").plan == T.WMResourcePlan("q", DISABLED, 7, None, "default")
    p.alter("q", queryParallelism=8, defaultPoolPath="nope")
    p.alter("q", isSetQueryParallelism=False, queryParallelism=8)
    assert p.get("q").plan.queryParallelism == 7
    p.alter("q", isSetQueryParallelism=True, isSetDefaultPoolPath=True, defaultPoolPath="Default")
    assert p.get("q").plan == T.WMResourcePlan("q", DISABLED, None, "default", "default")
    assert {pool.resourcePlanName for pool in p.get("q").pools} == {"q"}
    assert p.alter("q") is None


@pytest.mark.parametrize(("name", "changes", "error"), [
    ("p", {"name": "new", "status": ENABLED}, Refused), ("p", {"isSetQueryParallelism": True, "status": ENABLED}, Refused),
    ("p", {"name": " "}, Refused), ("p", {"name": "Taken"}, Meta), ("p", {"ns": "other"}, Refused),
    ("p", {"isSetQueryParallelism": True, "queryParallelism": 0}, Refused),
    ("p", {"isSetDefaultPoolPath": True, "defaultPoolPath": "nope"}, Missing),
    ("nope", {"name": "x"}, Missing), ("nope", {"status": ENABLED}, Missing),
    ("p", {"status": DISABLED, "force": True, "replace": True}, Meta), ("p", {"enable": True, "force": True}, Meta)])
def test_a_wrong_alter_changes_nothing(p, name, changes, error):
    p.create("taken")
    before = p.get("p")
    refused(error, p.alter, name, **changes)
    assert (p.get("p"), p.all()) == (before, {"p": DISABLED, "taken": DISABLED})


def test_a_plan_takes_the_place_of_another(p):
    for name in ("r", "s"):
        p.create(name)
        p.pool(name, 0.0, 1, plan=name)
    p.alter("p", status=ENABLED)
    assert p.alter("r", name="P", replace=True) is None
    [old] = set(p.all()) - {"p", "s"}
    assert old.startswith("p_old_2")
    assert p.all() == {"p": ENABLED, old: DISABLED, "s": DISABLED}
    assert set(p.pools("p")) == {"default", "r"}
    p.alter("p", status=ACTIVE)
    replaced = p.alter("s", status=ACTIVE, replace=True)
    assert (replaced.plan.name, replaced.plan.status, {pool.poolPath for pool in replaced.pools}) == ("p", ACTIVE, {"default", "s"})
    assert sorted(p.all().values()) == [ACTIVE, DISABLED, DISABLED]


@pytest.mark.parametrize(("name", "changes", "error"), [
    (None, {"name": "p"}, Refused), ("p", {}, Refused), ("p", {"name": "q", "status": ACTIVE}, Refused), ("p", {"status": ENABLED}, Refused),
    ("p", {"status": ACTIVE}, Missing), ("p", {"name": "q", "queryParallelism": 1}, Refused), ("p", {"name": "P"}, Refused),
    ("p", {"name": "nope"}, Missing), ("nope", {"name": "p"}, Missing)])
def test_a_wrong_replacement_changes_nothing(p, name, changes, error):
    p.create("q")
    refused(error, p.alter, name, replace=True, **changes)
    assert p.all() == {"p": DISABLED, "q": DISABLED}


def test_what_is_wrong_with_a_plan_is_told(p):
    assert p.problems("P") == ([], [])
    p.pool("a", 0.2, 3)
    p.pool("a.b", 0.7, 0)
    p.pool("a.c", 0.7)
    p.alter("p", isSetQueryParallelism=True, queryParallelism=8)
    errors = ["Invalid query parallelism for pool: a.b",
              "Sum of all pools' query parallelism: 9 exceeds resource plan query parallelism: 8",
              "Sum of root children pools' alloc fraction should be 1.0 got: 1.2 for pool: ",
              "Sum of children pools' alloc fraction should be less than 1 got: 1.4 for pool: a"]
    assert p.problems("p") == (errors, [])
    for enable, status in ((None, ENABLED), (True, ACTIVE)):
        with pytest.raises(Refused, match="Invalid query parallelism for pool: a.b"):
            p.alter("p", status=status, enable=enable)
    p.alter("p", isSetQueryParallelism=True, queryParallelism=10)
    warning = "Sum of all pools' query parallelism: 9 is less than resource plan query parallelism: 10"
    assert p.problems("p") == ([errors[0], *errors[2:]], [warning])
    refused(Missing, p.problems, "nope")
    for path in ("a.b", "a.c", "a"):
        p.drop_pool(path)
    p.alter("p", isSetDefaultPoolPath=True, isSetQueryParallelism=True)
    p.drop_pool("default")
    assert (p.problems("p"), p.pools()) == (([], []), {})


def test_pools_are_a_tree(p):
    p.pool("A", 0.5, 2, "Fair")
    p.pool("a.B", None, None)
    assert p.pools() == {"default": (1.0, 4, None), "a": (0.5, 2, "Fair"), "a.b": (0.0, 0, None)}
    p.map("group", "g", "a.b")
    p.alter("p", isSetDefaultPoolPath=True, defaultPoolPath="a")
    p.alter_pool("a", poolPath="c", allocFraction=0.25, queryParallelism=9, isSetSchedulingPolicy=True)
    assert p.pools() == {"default": (1.0, 4, None), "c": (0.25, 9, None), "c.b": (0.0, 0, None)}
    assert (p.mappings(), p.get("p").plan.defaultPoolPath) == ([("GROUP", "g", "c.b", 0)], "c")
    p.alter_pool("c", schedulingPolicy="fifo")
    assert p.pools()["c"][2] is None
    p.alter_pool("c", schedulingPolicy="fifo", isSetSchedulingPolicy=True)
    assert p.pools()["c"] == (0.25, 9, "fifo")


@pytest.mark.parametrize(("call", "args", "error"), [
    ("pool", ("A",), Taken), ("pool", ("x.y",), Missing), ("pool", ("n", 1, 1, "bad"), Wrong), ("pool", (" ",), Wrong),
    ("pool", ("n", 1, 1, None, "nope"), Missing),
    ("alter_pool", ("nope",), Missing), ("drop_pool", ("nope",), Missing), ("drop_pool", ("default",), Refused),
    ("drop_pool", ("a",), Refused), ("drop_pool", ("a.b",), Refused), ("drop_pool", ("a.b", "nope"), Missing)])
def test_a_wrong_pool_changes_nothing(p, call, args, error):
    p.pool("a")
    p.pool("a.b")
    p.map("user", "u", "a.b")
    before = p.get("p")
    refused(error, getattr(p, call), *args)
    assert p.get("p") == before


@pytest.mark.parametrize(("changes", "error"), [
    ({"poolPath": "default"}, Taken), ({"poolPath": "x.y"}, Missing), ({"poolPath": "a.b"}, Missing),
    ({"isSetSchedulingPolicy": True, "schedulingPolicy": "bad"}, Wrong)])
def test_a_wrong_alter_of_a_pool_changes_nothing(p, changes, error):
    p.pool("a")
    before = p.get("p")
    refused(error, p.alter_pool, "a", **changes)
    assert p.get("p") == before


def test_triggers_belong_to_pools(p):
    p.pool("a")
    p.trigger("T1")
    p.trigger("t2", None, None, isInUnmanaged=True)
    for path in ("a", "Default", "a"):
        p.link("t1", path)
    p.link("T2", "a")
    p.link("t2", "default", drop=True)
    assert p.triggers() == [("t1", "a > 1", "KILL", False), ("t2", None, None, True)]
    assert p.links() == [("a", "t1"), ("a", "t2"), ("default", "t1")]
    p.alter_trigger("t1", triggerExpression="b > 2")
    p.alter_trigger("T1", isInUnmanaged=True)
    assert p.triggers()[0] == ("t1", "b > 2", "KILL", True)
    p.drop_pool("a")
    assert p.links() == [("default", "t1")]
    p.link("t1", "default", drop=True)
    p.link("t2", "default")
    p.drop_trigger("T2")
    assert (p.links(), p.get("p").triggers) == ([], [T.WMTrigger("p", "t1", "b > 2", "KILL", True, "default")])


@pytest.mark.parametrize(("call", "args", "error"), [
    ("trigger", ("T",), Taken), ("trigger", (" ",), Wrong), ("trigger", ("n", "a", "b", "nope"), Missing),
    ("alter_trigger", ("nope",), Missing), ("drop_trigger", ("nope",), Missing), ("triggers", ("nope",), Missing),
    ("link", ("nope", "default"), Missing), ("link", ("t", "nope"), Missing), ("link", ("t", "default", "nope"), Missing)])
def test_a_wrong_trigger_changes_nothing(p, call, args, error):
    p.trigger("t")
    before = p.get("p")
    refused(error, getattr(p, call), *args)
    assert p.get("p") == before


def test_mappings_say_who_goes_where(p):
    p.pool("a")
    p.map(" User", " Bob ", "A", 3)
    p.map("application", "app")
    p.map("user", "bob", "default", 9, update=True)
    assert p.mappings() == [("APPLICATION", "app", None, 0), ("USER", "bob", "default", 3)]
    p.unmap("USER", "BOB")
    assert p.mappings() == [("APPLICATION", "app", None, 0)]


@pytest.mark.parametrize(("call", "args", "options", "error"), [
    ("map", ("USER", "Bob"), {}, Taken), ("map", ("role", "r"), {}, Wrong), ("map", ("group", "g", "nope"), {}, Missing),
    ("map", ("user", "carl"), {"update": True}, Missing), ("map", ("user", "u"), {"plan": "nope"}, Missing),
    ("unmap", ("user", "carl"), {}, Missing), ("unmap", ("role", "bob"), {}, Missing)])
def test_a_wrong_mapping_changes_nothing(p, call, args, options, error):
    p.map("user", "bob", "default", 3)
    before = p.get("p")
    refused(error, getattr(p, call), *args, **options)
    assert p.get("p") == before


@pytest.mark.parametrize("request_", [
    ("create_resource_plan", T.WMCreateResourcePlanRequest()), ("get_resource_plan", T.WMGetResourcePlanRequest()),
    ("alter_resource_plan", T.WMAlterResourcePlanRequest("p")), ("drop_resource_plan", T.WMDropResourcePlanRequest()),
    ("validate_resource_plan", T.WMValidateResourcePlanRequest()), ("create_wm_pool", T.WMCreatePoolRequest()),
    ("alter_wm_pool", T.WMAlterPoolRequest(poolPath="default")), ("alter_wm_pool", T.WMAlterPoolRequest(T.WMNullablePool("p", "default"))),
    ("drop_wm_pool", T.WMDropPoolRequest("p")), ("create_wm_trigger", T.WMCreateTriggerRequest()),
    ("drop_wm_trigger", T.WMDropTriggerRequest("p")), ("drop_wm_mapping", T.WMDropMappingRequest()),
    ("create_or_update_wm_mapping", T.WMCreateOrUpdateMappingRequest()),
    ("create_or_drop_wm_trigger_to_pool_mapping", T.WMCreateOrDropTriggerToPoolMappingRequest("p", "t"))])
def test_what_is_null_is_refused(p, request_):
    method, sent = request_
    with pytest.raises(Meta, match="Null"):
        getattr(p.hive, method)(sent)


def test_of_many_plans_that_are_activated_at_once_one_is_active(p):
    names = ["p", *"abcdef"]
    for name in names[1:]:
        p.create(name)
    clients = [p.hive.client.clone() for _ in names]
    with ThreadPoolExecutor(len(names)) as pool:
        activated = list(pool.map(lambda client, name: Plans(client).alter(name, status=ACTIVE, enable=True), clients, names))
    for client in clients:
        client.close()
    assert sorted(plan.plan.name for plan in activated) == sorted(names)
    assert sorted(p.all().values()) == [ACTIVE] + [ENABLED] * (len(names) - 1)
