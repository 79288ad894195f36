import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;

/** Hive's own client with TLS: lists the databases. Arguments: URI, trust store, its password. */
public class HiveTlsClient {
  public static void main(String[] args) throws Exception {
    HiveConf conf = new HiveConf();
    conf.set("hive.metastore.uris", args[0]);
    conf.set("hive.metastore.use.SSL", "true");
    conf.set("hive.metastore.truststore.path", args[1]);
    conf.set("hive.metastore.truststore.password", args[2]);
    conf.set("hive.metastore.connect.retries", "1");
    HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
    System.out.println("databases " + client.getAllDatabases());
    client.close();
  }
}
