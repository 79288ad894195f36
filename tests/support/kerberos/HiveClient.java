import java.security.PrivilegedExceptionAction;
import java.util.Scanner;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;

/**
 * Hive's own client with Kerberos or a delegation token. It reads commands from its input, a line each, and answers each
 * with a line: "ok ..." or "failed ...".
 */
public class HiveClient {
    private static final String SIGNATURE = "thatMetastore";

    /** Returns settings as the client of this version takes them: Hive 2.3 has a class of its own for them. */
    private static Configuration empty() throws Exception {
        try {
            return (Configuration) Class.forName("org.apache.hadoop.hive.conf.HiveConf").getConstructor().newInstance();
        } catch (ClassNotFoundException absent) {
            return new Configuration();
        }
    }

    private static HiveMetaStoreClient client(Configuration conf) throws Exception {
        try {
            return HiveMetaStoreClient.class.getConstructor(conf.getClass()).newInstance(conf);
        } catch (java.lang.reflect.InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
    }

    /** A client with a user and a password, as Hive 4's has them. */
    private static String withPassword(String[] words) throws Exception {
        Configuration conf = empty();
        conf.set("hive.metastore.uris", words[1]);
        conf.set("metastore.thrift.uris", words[1]);
        conf.set("metastore.client.auth.mode", "PLAIN");
        conf.set("metastore.client.plain.username", words[2]);
        conf.set(words[2], words[3]);
        conf.set("metastore.use.SSL", "true");
        conf.set("metastore.truststore.path", words[4]);
        conf.set("metastore.truststore.password", "changeit");
        conf.set("metastore.truststore.type", "PKCS12");
        conf.set("metastore.connect.retries", "1");
        return talk(conf, words, 5);
    }

    private static Configuration conf(String uri, String principal, String protection) throws Exception {
        Configuration conf = empty();
        conf.set("hadoop.security.authentication", "kerberos");
        conf.set("hadoop.rpc.protection", protection);
        conf.set("hive.metastore.uris", uri);
        conf.set("hive.metastore.sasl.enabled", "true");
        conf.set("hive.metastore.kerberos.principal", principal);
        conf.set("hive.metastore.connect.retries", "1");
        conf.set("hive.metastore.failure.retries", "0");
        conf.set("hive.metastore.client.connect.retry.delay", "1ms");
        return conf;
    }

    private static String run(String[] words) throws Exception {
        if (words[0].equals("password")) return withPassword(words);
        Configuration conf = conf(words[1], words[2], words[3]);
        UserGroupInformation.setConfiguration(conf);
        if (words[0].equals("token")) {
            UserGroupInformation user = UserGroupInformation.createRemoteUser("job");
            Token<TokenIdentifier> token = new Token<>();
            token.decodeFromUrlString(words[4]);
            token.setService(new Text(SIGNATURE));
            user.addToken(token);
            conf.set("hive.metastore.token.signature", SIGNATURE);
            return user.doAs((PrivilegedExceptionAction<String>) () -> talk(conf, words, 5));
        }
        UserGroupInformation user = UserGroupInformation.loginUserFromKeytabAndReturnUGI(words[4], words[5]);
        return user.doAs((PrivilegedExceptionAction<String>) () -> talk(conf, words, 6));
    }

    private static String talk(Configuration conf, String[] words, int at) throws Exception {
        HiveMetaStoreClient client = client(conf);
        try {
            switch (words[at]) {
                case "databases": return String.valueOf(client.getAllDatabases());
                case "large": return String.valueOf(client.listTableNamesByFilter("default", "x".repeat(300_000), (short) 1));
                case "lock": return String.valueOf(client.openTxn(words[at + 1]));
                case "issue": return client.getDelegationToken(words[at + 1], words[at + 2]);
                case "renew": return String.valueOf(client.renewDelegationToken(words[at + 1]));
                case "cancel": client.cancelDelegationToken(words[at + 1]); return "";
                default: throw new IllegalArgumentException(words[at]);
            }
        } finally {
            client.close();
        }
    }

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String answer;
            try {
                answer = "ok " + run(lines.nextLine().split("\t"));
            } catch (Throwable error) {
                StringBuilder text = new StringBuilder("failed");
                for (Throwable cause = error; cause != null; cause = cause.getCause()) text.append(' ').append(cause);
                answer = text.toString();
            }
            System.out.println("> " + answer.replace('\n', ' '));
        }
    }
}
