import java.io.File;
import java.util.Properties;
import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.server.BrokerTopicStats;
import kafka.utils.KafkaScheduler;
import org.apache.kafka.common.utils.Time;

/**
 * Lets the log of Kafka 0.11 recover partitions' directories: it rebuilds indexes and producer snapshots from their .log files, rolls a
 * segment, and closes the log as a clean stop does.
 *
 * Arguments: the directories.
 */
public final class RecoverLog {
    // Long enough that no producer is forgotten.
    private static final int EXPIRATION_MS = Integer.MAX_VALUE;

    private RecoverLog() {
    }

    public static void main(String[] args) {
        KafkaScheduler scheduler = new KafkaScheduler(1, "recovery-", true);
        scheduler.startup();
        Properties properties = new Properties();
        properties.put("index.interval.bytes", "1");
        properties.put("segment.index.bytes", "8000");
        for (String directory : args) {
            Log log = Log.apply(new File(directory), new LogConfig(properties), 0L, 0L, scheduler, new BrokerTopicStats(),
                    Time.SYSTEM, EXPIRATION_MS, EXPIRATION_MS);
            log.roll(-1L);
            log.takeProducerSnapshot();
            log.close();
        }
        scheduler.shutdown();
    }
}
