import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads records of a topic in a share group and accepts those of odd offsets, so that what is done lies beyond what
 * isn't; then leaves. Arguments: server, group, topic, how many to accept.
 */
public final class ShareReader {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        int accepted = 0;
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(arguments[2]));
            while (accepted < Integer.parseInt(arguments[3])) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    boolean isOdd = record.offset() % 2 == 1;
                    consumer.acknowledge(record, isOdd ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                    accepted += isOdd ? 1 : 0;
                }
                consumer.commitSync();
            }
        }
    }
}
