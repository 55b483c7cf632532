import java.io.File;
import java.util.Properties;
import kafka.log.Cleaner;
import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.log.LogToClean;
import kafka.log.SkimpyOffsetMap;
import kafka.server.BrokerTopicStats;
import kafka.utils.KafkaScheduler;
import kafka.utils.Throttler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Lets the log of Kafka 0.11 recover partitions' directories: it rebuilds indexes and producer snapshots from their .log files, rolls a
 * segment, has its cleaner clean those named `compacted-…`, and closes the log as a clean stop does.
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
        properties.put("file.delete.delay.ms", "0");
        for (String directory : args) {
            Log log = Log.apply(new File(directory), new LogConfig(properties), 0L, 0L, scheduler, new BrokerTopicStats(),
                    Time.SYSTEM, EXPIRATION_MS, EXPIRATION_MS);
            log.roll(-1L);
            if (new File(directory).getName().startsWith("compacted-")) {
                clean(log);
            }
            log.takeProducerSnapshot();
            log.close();
        }
        scheduler.shutdown();
    }

    private static void clean(Log log) {
        Throttler unthrottled = new Throttler(1e12, 300L, true, "throttler", "bytes", Time.SYSTEM);
        SkimpyOffsetMap map = new SkimpyOffsetMap(1 << 20, "MD5");
        Cleaner cleaner = new Cleaner(0, map, 1 << 16, 1 << 20, 0.75, unthrottled, Time.SYSTEM, new Proceed());
        log.onHighWatermarkIncremented(log.logEndOffset());
        cleaner.clean(new LogToClean(log.topicPartition(), log, 0L, log.activeSegment().baseOffset()));
    }

    /** What the cleaner asks between pieces of its work. */
    private static final class Proceed extends AbstractFunction1<TopicPartition, BoxedUnit> {
        @Override
        public BoxedUnit apply(TopicPartition partition) {
            return BoxedUnit.UNIT;
        }
    }
}
