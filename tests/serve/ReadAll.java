import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads all partitions to their ends and prints a line of JSON for each record, and for each partition that the client
 * gives up. Arguments: bootstrap server, isolation level; to read as the member of a group, its protocol, "classic" or
 * "consumer".
 */
class ReadAll {
    private static final Pattern PARTITION = Pattern.compile("(?:from|for|of) (?:partition )?(\\S+)-(\\d+)[ .]");

    public static void main(String[] arguments) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("isolation.level", arguments[1]);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", arguments.length > 2 ? "earliest" : "none");
        settings.put("fetch.max.wait.ms", 10);
        settings.put("max.poll.records", 10000);
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        if (arguments.length > 2) {
            settings.put("group.id", "readers");
            if (!arguments[2].equals("classic")) { // unknown to old clients
                settings.put("group.protocol", arguments[2]);
            }
        }
        try (PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16));
                KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> all = new ArrayList<>();
            Map<String, List<PartitionInfo>> topics = consumer.listTopics();
            for (List<PartitionInfo> partitions : topics.values()) {
                for (PartitionInfo each : partitions) {
                    all.add(new TopicPartition(each.topic(), each.partition()));
                }
            }
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            if (arguments.length > 2) {
                consumer.subscribe(topics.keySet());
                readAsMember(consumer, ends, out);
            } else {
                read(consumer, ends, out);
            }
        }
    }

    private static void read(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends, PrintStream out) {
        List<TopicPartition> left = new ArrayList<>(ends.keySet());
        consumer.assign(left);
        consumer.seekToBeginning(left);
        while (!left.isEmpty()) {
            try {
                print(consumer.poll(Duration.ofMillis(100)), out);
                left.removeIf(each -> consumer.position(each) >= ends.get(each));
            } catch (KafkaException error) {
                left.remove(givenUp(error, out));
            }
            consumer.assign(left);
        }
    }

    private static void readAsMember(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends, PrintStream out) {
        List<TopicPartition> left = new ArrayList<>(ends.keySet());
        while (!left.isEmpty()) {
            print(consumer.poll(Duration.ofMillis(100)), out);
            left.removeIf(each -> consumer.assignment().contains(each) && consumer.position(each) >= ends.get(each));
        }
        consumer.commitSync();
    }

    private static void print(ConsumerRecords<byte[], byte[]> records, PrintStream out) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            StringBuilder headers = new StringBuilder();
            for (Header header : record.headers()) {
                headers.append(headers.length() == 0 ? "" : ", ");
                headers.append("[" + text(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)));
                headers.append(", " + text(header.value()) + "]");
            }
            out.println("{\"partition\": \"" + record.topic() + "-" + record.partition() + "\", \"offset\": "
                    + record.offset() + ", \"timestamp\": " + record.timestamp() + ", \"key\": " + text(record.key())
                    + ", \"value\": " + text(record.value()) + ", \"headers\": [" + headers + "]}");
        }
    }

    private static TopicPartition givenUp(KafkaException error, PrintStream out) {
        Matcher found = PARTITION.matcher(error.getMessage() + " ");
        if (!found.find()) {
            throw error;
        }
        out.println("{\"partition\": \"" + found.group(1) + "-" + found.group(2) + "\", \"error\": "
                + text(error.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8)) + "}");
        return new TopicPartition(found.group(1), Integer.parseInt(found.group(2)));
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : "\"" + Base64.getEncoder().encodeToString(bytes) + "\"";
    }
}
