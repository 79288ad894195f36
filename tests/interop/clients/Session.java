import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.DataOperationType;
import org.apache.hadoop.hive.metastore.api.HeartbeatTxnRangeResponse;
import org.apache.hadoop.hive.metastore.api.LockComponent;
import org.apache.hadoop.hive.metastore.api.LockLevel;
import org.apache.hadoop.hive.metastore.api.LockRequest;
import org.apache.hadoop.hive.metastore.api.LockResponse;
import org.apache.hadoop.hive.metastore.api.LockType;
import org.apache.hadoop.hive.metastore.api.ShowLocksRequest;
import org.apache.hadoop.hive.metastore.api.ShowLocksResponseElement;
import org.apache.hadoop.hive.metastore.api.TxnInfo;

/** A session of one generation of Hive's own client; prints what it was told, one fact a line. */
public class Session {
    private static IMetaStoreClient client;

    public static void main(String[] arguments) throws Exception {
        client = connected(arguments[0]);
        long first = client.openTxn("ann");
        say("first", first);
        LockResponse held = client.lock(writing(first, "p=1"));
        say("lock", held.getState());
        say("check", client.checkLock(held.getLockid()).getState());
        LockResponse reading = client.lock(request(0, component(LockType.SHARED_READ, DataOperationType.SELECT, null)));
        say("reading", reading.getState());
        Long writeId = (Long) optional("allocateTableWriteId", first, "db", "t");
        say("writeId", writeId);
        say("writeIdAgain", optional("allocateTableWriteId", first, "DB", "T"));

        long aborted = client.openTxn("bob");
        long open = client.openTxn("eve");
        client.rollbackTxn(aborted);
        say("commitOfAborted", failure(() -> client.commitTxn(aborted)));
        say("commitOfUnknown", failure(() -> client.commitTxn(987654321L)));
        ValidTxnList all = client.getValidTxns();
        say("mark", all.getHighWatermark());
        say("openIsValid", all.isTxnValid(open));
        say("abortedIsValid", all.isTxnValid(aborted));
        ValidTxnList mine = client.getValidTxns(first);
        say("ownIsValid", mine.isTxnValid(first));
        say("validWriteIds", optional("getValidWriteIds", Arrays.asList("db.t"), all.writeToString()));

        client.heartbeat(first, 0);
        client.heartbeat(0, reading.getLockid());
        HeartbeatTxnRangeResponse range = client.heartbeatTxnRange(first, open);
        say("rangeAborted", range.getAborted());
        say("rangeUnknown", range.getNosuch());
        List<String> partitions = Arrays.asList("p=1", "p=2");
        if (writeId == null) {
            optional("addDynamicPartitions", first, "db", "t", partitions, DataOperationType.INSERT);
        } else {
            optional("addDynamicPartitions", first, writeId, "db", "t", partitions, DataOperationType.INSERT);
        }
        ShowLocksRequest filter = new ShowLocksRequest();
        filter.setDbname("db");
        filter.setTablename("t");
        List<String> shown = new ArrayList<>();
        for (ShowLocksResponseElement one : client.showLocks(filter).getLocks()) {
            shown.add(one.getType() + " " + one.getState() + " " + one.getPartname() + " " + (one.getTxnid() == first));
        }
        say("locks", shown);
        List<String> txns = new ArrayList<>();
        for (TxnInfo one : client.showTxns().getOpen_txns()) {
            txns.add(one.getUser() + " " + one.getState());
        }
        say("txns", txns);
        say("compactions", client.showCompactions().getCompactsSize());
        client.commitTxn(first);
        client.commitTxn(first);
        client.commitTxn(open);
        client.unlock(reading.getLockid());
        say("heartbeatOfCommitted", failure(() -> client.heartbeat(first, 0)));
        say("checkOfGone", failure(() -> client.checkLock(held.getLockid())));
        say("locksAtTheEnd", client.showLocks(filter).getLocks().size());
        String now = client.getValidTxns().writeToString();
        say("validWriteIdsAtTheEnd", optional("getValidWriteIds", Arrays.asList("db.t"), now));
        client.close();
    }

    private static IMetaStoreClient connected(String uri) throws Exception {
        Configuration conf;
        try {
            conf = (Configuration) Class.forName("org.apache.hadoop.hive.metastore.conf.MetastoreConf")
                .getMethod("newMetastoreConf").invoke(null);
        } catch (ClassNotFoundException before31) {
            conf = (Configuration) Class.forName("org.apache.hadoop.hive.conf.HiveConf").getConstructor().newInstance();
        }
        conf.set("hive.metastore.uris", uri);
        conf.set("hive.metastore.client.capability.check", "false");
        for (Constructor<?> one : Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStoreClient").getConstructors()) {
            if (one.getParameterCount() == 1 && one.getParameterTypes()[0].isInstance(conf)) {
                return (IMetaStoreClient) one.newInstance(conf);
            }
        }
        throw new IllegalStateException("the client has no constructor for " + conf.getClass());
    }

    private static LockRequest writing(long txn, String partition) throws Exception {
        return request(txn, component(LockType.SHARED_READ, DataOperationType.INSERT, partition));
    }

    private static LockRequest request(long txn, LockComponent component) {
        LockRequest request = new LockRequest(new ArrayList<>(Arrays.asList(component)), "ann", "h1");
        if (txn != 0) {
            request.setTxnid(txn);
        }
        request.setAgentInfo("interop");
        return request;
    }

    private static LockComponent component(LockType type, DataOperationType operation, String partition) throws Exception {
        LockComponent component = new LockComponent(
            type, partition == null ? LockLevel.TABLE : LockLevel.PARTITION, "db");
        component.setTablename("t");
        component.setPartitionname(partition);
        component.setOperationType(operation);
        try {
            component.getClass().getMethod("setIsTransactional", boolean.class).invoke(component, true);
        } catch (NoSuchMethodException before31) {
            component.getClass().getMethod("setIsAcid", boolean.class).invoke(component, true);
        }
        return component;
    }

    /** Calls a method that only some generations have, or have with these arguments; null where it is not there. */
    private static Object optional(String name, Object... arguments) throws Exception {
        for (Method one : IMetaStoreClient.class.getMethods()) {
            if (one.getName().equals(name) && fits(one.getParameterTypes(), arguments)) {
                try {
                    return one.invoke(client, arguments);
                } catch (InvocationTargetException failure) {
                    throw (Exception) failure.getCause();
                }
            }
        }
        return null;
    }

    private static boolean fits(Class<?>[] types, Object[] arguments) {
        if (types.length != arguments.length) {
            return false;
        }
        for (int place = 0; place < types.length; place++) {
            boolean number = types[place] == long.class && arguments[place] instanceof Long;
            if (!number && !types[place].isInstance(arguments[place])) {
                return false;
            }
        }
        return true;
    }

    private interface Step {
        void run() throws Exception;
    }

    private static String failure(Step step) {
        try {
            step.run();
            return "nothing";
        } catch (Exception error) {
            return error.getClass().getSimpleName() + ": " + error.getMessage();
        }
    }

    private static void say(String what, Object value) {
        System.out.println("fact " + what + " = " + value);
    }
}
