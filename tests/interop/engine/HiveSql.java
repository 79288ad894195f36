import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.DriverFactory;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.session.SessionState;
import org.apache.hadoop.hive.ql.txn.compactor.Worker;

/**
 * Hive 4's SQL engine in this JVM (compiler, DbTxnManager, Tez in local mode), on the metastore that the first argument names; the second
 * is a directory for its scratch, the third and the fourth are the warehouses for managed and for external tables, as
 * hive-site.xml would have them. Its compactor runs here too, as a Worker of that metastore. Asked over stdin: one JSON request a line, one JSON answer a line.
 */
public class HiveSql {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err);
        HiveConf conf = conf(arguments);
        SessionState.start(new SessionState(conf));
        answers.println("{\"answer\": \"ready\"}");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode request = JSON.readTree(line);
                answer.set("answer", JSON.valueToTree(request.has("sql") ? rows(request.get("sql").asText(), conf) : compact(request, conf)));
            } catch (Throwable problem) {
                StringWriter trace = new StringWriter();
                problem.printStackTrace(new PrintWriter(trace));
                answer.put("error", String.valueOf(problem.getMessage()));
                answer.put("trace", trace.toString());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        System.exit(0);
    }

    private static List<String> rows(String sql, HiveConf conf) throws Exception {
        if (sql.startsWith("set ")) {
            String[] pair = sql.substring(4).split("=", 2);
            SessionState.get().getConf().set(pair[0], pair[1]);
            conf.set(pair[0], pair[1]);
            return new ArrayList<>();
        }
        IDriver driver = DriverFactory.newDriver(conf);
        try {
            driver.run(sql);
            List<String> rows = new ArrayList<>();
            List<String> some = new ArrayList<>();
            while (driver.getResults(some)) {
                rows.addAll(some);
                some.clear();
            }
            return rows;
        } finally {
            driver.close();
            driver.destroy();
        }
    }

    /** One round of Hive's Worker: the next request of the queue, by a MapReduce job in this JVM or by queries. */
    private static List<String> compact(JsonNode request, HiveConf conf) throws Exception {
        HiveConf own = new HiveConf(conf);
        own.setBoolVar(HiveConf.ConfVars.COMPACTOR_CRUD_QUERY_BASED, request.get("compact").asText().equals("by queries"));
        Worker worker = new Worker();
        worker.setConf(own);
        worker.init(new AtomicBoolean(true));
        worker.start();
        worker.join();
        return new ArrayList<>();
    }

    private static HiveConf conf(String[] arguments) {
        String uri = arguments[0];
        String scratch = arguments[1];
        HiveConf conf = new HiveConf(HiveSql.class);
        String[] settings = {
            "hive.metastore.uris", uri, "metastore.thrift.uris", uri,
            "hive.metastore.warehouse.dir", arguments[2], "hive.metastore.warehouse.external.dir", arguments[3],
            "hive.support.concurrency", "true", "hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
            "hive.execution.engine", "tez", "tez.local.mode", "true", "tez.local.mode.without.network", "true",
            "hive.in.tez.test", "true", "fs.defaultFS", "file:///", "hive.exec.scratchdir", scratch + "/scratch",
            "hive.exec.local.scratchdir", scratch + "/local", "hive.user.install.directory", scratch + "/user",
            "hive.querylog.location", scratch + "/log", "hive.downloaded.resources.dir", scratch + "/resources",
            "tez.staging-dir", scratch + "/staging", "hive.exec.dynamic.partition.mode", "nonstrict",
            "hive.stats.autogather", "false", "hive.stats.column.autogather", "false",
            "hive.security.authorization.enabled", "false", "hive.tez.container.size", "128", "hive.tez.java.opts", "-Xmx128m",
            "tez.runtime.io.sort.mb", "16", "hive.exec.submitviachild", "false", "hive.scheduled.queries.executor.enabled", "false",
            "hive.query.results.cache.enabled", "false", "hive.fetch.task.conversion", "none", "hive.vectorized.execution.enabled", "true",
            "hadoop.tmp.dir", scratch + "/hadoop", "mapreduce.framework.name", "local", "mapreduce.local.map.tasks.maximum", "2",
            "hive.session.id", "interop", "tez.ignore.lib.uris", "true"};
        for (int place = 0; place < settings.length; place += 2) {
            conf.set(settings[place], settings[place + 1]);
        }
        // A minor compaction by queries asks for its table with a HiveConf of its own, which elsewhere has hive-site.xml's values.
        System.setProperty("hive.metastore.uris", uri);
        return conf;
    }
}
