import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** A search server of one node without security, for tests. Arguments: its folder and its two ports. */
public class SearchServer extends Node {
    SearchServer(Environment environment, Collection plugins) {
        super(environment, plugins, false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("path.data", arguments[0] + "/data")
            .put("cluster.name", "tests")
            .put("node.name", "tests-1")
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .put("http.host", "127.0.0.1")
            .put("http.port", arguments[1])
            .put("transport.host", "127.0.0.1")
            .put("transport.port", arguments[2])
            .put("node.processors", 2)
            .build();
        Environment environment = new Environment(settings, Paths.get(arguments[0], "config"));
        final SearchServer node =
            new SearchServer(environment, Arrays.asList(new Class[] {Netty4Plugin.class}));
        Runtime.getRuntime().addShutdownHook(new Thread(new Closing(node)));
        node.start();
        new CountDownLatch(1).await();
    }

    static class Closing implements Runnable {
        private final Node node;

        Closing(Node node) {
            this.node = node;
        }

        public void run() {
            try {
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            }
        }
    }
}
