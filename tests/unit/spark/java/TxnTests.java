package transactionmetastore.spark.txn;

import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import transactionmetastore.spark.planner.PlannerClient;

/** What keeps transactions open. Each public method is a test. */
public final class TxnTests {
    private static final double TIMEOUT_SECONDS = 0.3;

    private final List<Lease> leases = new ArrayList<>();

    public TxnTests(File directory) {}

    public void aPlannerThatHangsKeepsNoHeartbeatOfAnotherBack() throws Exception {
        CountDownLatch hung = new CountDownLatch(1), forever = new CountDownLatch(1), beats = new CountDownLatch(1);
        Planner hanging = new Planner(() -> {
            hung.countDown();
            forever.await();
        });
        Planner other = new Planner(beats::countDown);
        try {
            for (int txn = 1; txn <= 5; ++txn) keep(hanging, txn);
            require(hung.await(1, TimeUnit.MINUTES));
            keep(other, 1);
            require(beats.await(1, TimeUnit.MINUTES));
        } finally {
            leases.forEach(Lease::forget);
            forever.countDown();
            hanging.server.stop(0);
            other.server.stop(0);
        }
    }

    public void workForLaterKeepsNoHeartbeatBack() throws Exception {
        CountDownLatch forever = new CountDownLatch(1), beats = new CountDownLatch(1);
        Planner planner = new Planner(beats::countDown);
        try {
            Heartbeats.later(() -> {
                try {
                    forever.await();
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            });
            keep(planner, 1);
            require(beats.await(1, TimeUnit.MINUTES));
        } finally {
            leases.forEach(Lease::forget);
            forever.countDown();
            planner.server.stop(0);
        }
    }

    private void keep(Planner planner, long txn) {
        Lease lease = new Lease(planner.client, txn, false, false, TIMEOUT_SECONDS);
        leases.add(lease);
        Heartbeats.keep(lease);
    }

    private static void require(boolean holds) {
        if (!holds) throw new AssertionError("waited in vain");
    }

    private interface Answering {
        void answer() throws InterruptedException;
    }

    /** It answers each call with {}, once "answering" has come to its end. */
    private static final class Planner {
        final HttpServer server;
        final PlannerClient client;

        Planner(Answering answering) throws IOException {
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            server.setExecutor(Executors.newCachedThreadPool(work -> {
                Thread thread = new Thread(work);
                thread.setDaemon(true);
                return thread;
            }));
            server.createContext("/v1/", exchange -> {
                exchange.getRequestBody().readAllBytes();
                try {
                    answering.answer();
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
                byte[] answer = "{}".getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(200, answer.length);
                exchange.getResponseBody().write(answer);
                exchange.close();
            });
            server.start();
            client = PlannerClient.of("http://127.0.0.1:" + server.getAddress().getPort(), new Configuration());
        }
    }
}
