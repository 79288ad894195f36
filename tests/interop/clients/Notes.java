import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.GetAllWriteEventInfoRequest;
import org.apache.hadoop.hive.metastore.api.InsertEventRequestData;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.WriteEventInfo;
import org.apache.hadoop.hive.metastore.api.WriteNotificationLogBatchRequest;
import org.apache.hadoop.hive.metastore.api.WriteNotificationLogRequest;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.thrift.TDeserializer;
import org.apache.thrift.protocol.TJSONProtocol;

/** A Hive 4 client that tells which files it wrote to table db.t, and reads of its commit and of them. */
public class Notes {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = MetastoreConf.newMetastoreConf();
        conf.set("hive.metastore.uris", arguments[0]);
        conf.set("hive.metastore.client.capability.check", "false");
        HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
        long txn = client.openTxn("ann");
        long writeId = client.allocateTableWriteId(txn, "db", "t");
        client.addWriteNotificationLog(note(txn, writeId, "1", "file:/w/p=1/delta_1_1/bucket_0"));
        client.addWriteNotificationLogInBatch(new WriteNotificationLogBatchRequest("hive", "db", "t", Arrays.asList(
            note(txn, writeId, "1", "file:/w/p=1/delta_1_1/bucket_1"), note(txn, writeId, "2", "file:/w/p=2/delta_1_1/bucket_0"))));
        client.commitTxn(txn);

        List<String> events = new ArrayList<>();
        for (NotificationEvent one : client.getNextNotification(0, 0, null).getEvents()) {
            events.add(one.getEventType());
        }
        say("events", events);
        GetAllWriteEventInfoRequest request = new GetAllWriteEventInfoRequest(txn);
        for (WriteEventInfo one : client.getAllWriteEventInfo(request)) {
            Table table = new Table();
            new TDeserializer(new TJSONProtocol.Factory()).deserialize(table, one.getTableObj(), "UTF-8");
            Partition partition = new Partition();
            new TDeserializer(new TJSONProtocol.Factory()).deserialize(partition, one.getPartitionObj(), "UTF-8");
            say(one.getPartition(), one.getWriteId() + " " + one.getFiles() + " " + table.equals(client.getTable("db", "t")) + " "
                + partition.equals(client.getPartition("db", "t", partition.getValues())));
        }
        client.close();
    }

    private static WriteNotificationLogRequest note(long txn, long writeId, String partition, String file) {
        InsertEventRequestData files = new InsertEventRequestData(new ArrayList<>(Arrays.asList(file)));
        files.setSubDirectoryList(new ArrayList<>(Arrays.asList("delta_1_1")));
        WriteNotificationLogRequest request = new WriteNotificationLogRequest(txn, writeId, "db", "t", files);
        request.setPartitionVals(Arrays.asList(partition));
        return request;
    }

    private static void say(String what, Object value) {
        System.out.println("fact " + what + " = " + value);
    }
}
