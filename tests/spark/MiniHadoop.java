import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** HDFS and YARN with two nodes in one process, until its standard input ends: {@code MiniHadoop FOLDER NAME=VALUE…}. */
public final class MiniHadoop {
    public static void main(String[] arguments) throws Exception {
        Path work = Path.of(arguments[0]);
        Configuration settings = new YarnConfiguration();
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.set(pair[0], pair[1]);
        }
        MiniDFSCluster files = new MiniDFSCluster.Builder(settings, work.resolve("dfs").toFile()).numDataNodes(1).build();
        files.waitActive();
        MiniYARNCluster yarn = new MiniYARNCluster("kseg", 2, 1, 1);
        yarn.init(settings);
        yarn.start();
        Configuration made = yarn.getConfig();
        made.unset("net.topology.node.switch.mapping.impl"); // a class that only this process has
        try (OutputStream site = Files.newOutputStream(work.resolve("site.xml"))) {
            made.writeXml(site);
        }
        Path conf = Files.createDirectories(work.resolve("conf"));
        Files.copy(work.resolve("site.xml"), conf.resolve("core-site.xml"));
        Files.move(work.resolve("site.xml"), conf.resolve("yarn-site.xml"));
        System.in.readAllBytes();
        yarn.stop();
        files.shutdown();
        System.exit(0);
    }
}
