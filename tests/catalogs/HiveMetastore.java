import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/** A Hive metastore over Derby, which only this machine reaches: {@code HiveMetastore PORT FOLDER}. */
public final class HiveMetastore {
    public static void main(String[] arguments) throws Exception {
        HiveConf settings = new HiveConf();
        settings.set("javax.jdo.option.ConnectionURL", "jdbc:derby:;create=true;databaseName=" + arguments[1] + "/derby");
        settings.set("hive.metastore.warehouse.dir", "file://" + arguments[1] + "/warehouse");
        settings.set("hive.metastore.schema.verification", "false");
        settings.set("datanucleus.schema.autoCreateAll", "true");
        settings.set("datanucleus.connectionPoolingType", "NONE"); // Spark has no library for pools
        TxnDbUtil.setConfValues(settings);
        TxnDbUtil.prepDb(settings); // tables of locks
        var handler = RetryingHMSHandler.getProxy(settings, new HiveMetaStore.HMSHandler("metastore", settings, false), true);
        var socket = new TServerSocket(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        new TThreadPoolServer(
                new TThreadPoolServer.Args(socket)
                    .processor(new TSetIpAddressProcessor<>(handler))
                    .transportFactory(new TTransportFactory())
                    .protocolFactory(new TBinaryProtocol.Factory()))
            .serve();
    }
}
