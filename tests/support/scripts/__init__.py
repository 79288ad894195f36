"""Stories about transactions and locks as text files, told to a pure model and to a server alike.

A script is blocks: commands, a line of dashes, what they answer. Names stand for numbers, one fact is one line, ``#``
starts a comment. Adding one needs no test code: write the commands, run ``python -m tests.support.scripts`` to record the
answers (of the model), and read them. A first line ``settings KEY=VALUE ...`` is for scripts that need other settings
than the default. Places are ``db``, ``db.table`` or ``db.table/key=value``; ``unknown`` is an id that nobody has.

    open t1 t2 [KIND] [user=U] [host=H] [agent=A] [policy=P]    one call each; together t1 t2: in one call
    open_many m 503, open_count -1                              names m1 to m503; a call that is about the number only
    abort t1 [code=N] [policy=P], commit t1 [excl=true|false] [policy=P] [key=db.t:_metaK=V] [last_id=N:PLACE,PLACE]
    abort_all t1 m1..m503 [code=N]                              in one call
    heartbeat t1, heartbeat l1, heartbeat nothing, heartbeat_range t1 t3
    partitions t1 db.table [op=OP] [write_id=N] p=1 p=2         what a dynamic write has written
    txns [hiding KIND,...], info                                who is open or aborted; with their owners
    seed_txns N, number t1, reason t1
    open_replayed P 7 8, commit_replayed P 7 [db.t/p=1:WRITE_ID ...], abort_replayed P 7
    snapshot t1                                                 what it sees of the others; kept for reads and valid
    write t1 db.table, rewrite t1 db.table                      get a write id; another one
    writes db.table t1 t2, writes_replayed P db.table 7:1 8:2
    seed db.table N, max db.table
    reads t1 db.table                                           which of the write ids that were given out it may see
    valid t1|now|everything|write_id=N db.table ...             the lists themselves
    replicate db.table LIST [p=1 ...]
    lock l1 [txn=t1] [op=OP] [user=U] [agent=A] [dynamic] [plain] [zero_wait] [ctas] TYPE PLACE [OP], TYPE PLACE
    check l1, unlock l1, locks [db=D] [table=T] [partition=P] [txn=t1], who [...]     who: as show_locks orders and tells it
    components, completed, write_set, latest_conflict t1        what is stored about writes
    rebuild t1 db.view, rebuild_heartbeat t1 db.view
    view v [as_json] db.table ..., stale v [as_of=t1] [used=db.table,...]       a materialized view; what happened since
    make PLACE [KEY=VALUE ...], drop PLACE, rename db.t NAME, parameter PLACE KEY, compactions
    advance 301s, reap, purge                                   time; the house-keeper, whole or without expiry
    clean                                                       the Cleaner, for what was aborted; then purge
"""

from pathlib import Path

from tests.support.scripts.story import Story

SCRIPTS = Path(__file__).parents[2] / "scripts"
DASHES = "----"


def blocks(text):
    """The (lines before the dashes, recorded answer) of a script."""
    found = []
    commands = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == DASHES:
            answer = []
            for answered in lines:
                if not answered:
                    break
                answer.append(answered)
            found.append((commands, "\n".join(answer)))
            commands = []
        else:
            commands.append(line)
    return found


def settings_of(text):
    """The settings that a script asks for."""
    first = next((line for line in text.splitlines() if line and not line.startswith("#")), "")
    words = first.split()
    return dict(word.split("=", 1) for word in words[1:]) if words[:1] == ["settings"] else {}


def play(text, world):
    """The script with the answers of this world."""
    story = Story(world)
    played = []
    for commands, _ in blocks(text):
        answers = [answer for line in commands for answer in story.tell(line)]
        played.append("\n".join([*commands, DASHES, *answers]))
    return "\n\n".join(played) + "\n"


def all_scripts():
    """Every script of the tree."""
    return sorted(path for path in SCRIPTS.rglob("*") if path.is_file() and path.suffix == "" and path.parent != SCRIPTS)
