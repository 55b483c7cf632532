import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** The REST catalog of Iceberg's own tests, with its tables in SQLite: {@code RestCatalog PORT FOLDER}. */
public final class RestCatalog {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = Map.of(
            "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri", "jdbc:sqlite:" + arguments[1] + "/catalog.db",
            "warehouse", "file://" + arguments[1] + "/warehouse");
        var catalog = CatalogUtil.buildIcebergCatalog("rest", settings, new Configuration());
        var context = new ServletContextHandler();
        context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
        var server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        server.setHandler(context);
        server.start();
        server.join();
    }
}
