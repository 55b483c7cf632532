import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a broker's topics with what the dump has a line for: each codec, both timestamp types, headers, nulls, committed and
 * aborted transactions, compaction with tombstones, several segments, group offsets.
 *
 * Arguments: the bootstrap server. Times are fixed, so that segments roll by them and not by the clock.
 */
public final class WriteTopics {
    // 2024-01-01T00:00:00Z; a broker takes times of the past, and topics here keep records for ever.
    private static final long START_MS = 1_704_067_200_000L;
    private static final int RECORDS = 120;
    private static final int RECORDS_PER_BATCH = 20;

    private final String bootstrap;

    private WriteTopics(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        new WriteTopics(args[0]).run();
    }

    private void run() throws Exception {
        createTopics();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            writeCounted(codec.equals("none") ? "plain" : codec, codec, 10);
        }
        writeCounted("append-time", "none", 10);
        // A minute between records, ten seconds per segment: each batch of the topic starts one.
        writeCounted("rolled", "none", 60_000);
        writeOddRecords();
        writeTransactions();
        writeCompacted();
        commitOffsets();
    }

    private void createTopics() throws Exception {
        String[] plain = {"plain", "gzip", "snappy", "lz4", "zstd", "odd-records", "transactions"};
        List<NewTopic> topics = new ArrayList<>();
        for (String name : plain) {
            topics.add(topic(name, Map.of()));
        }
        topics.add(topic("append-time", Map.of("message.timestamp.type", "LogAppendTime")));
        topics.add(topic("rolled", Map.of("segment.ms", "10000")));
        topics.add(topic("compacted", Map.of(
                "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01", "segment.ms", "10000")));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(topics).all().get(60, TimeUnit.SECONDS);
        }
    }

    private static NewTopic topic(String name, Map<String, String> configs) {
        Map<String, String> all = new java.util.HashMap<>(configs);
        all.put("retention.ms", "-1");
        // Small enough that a few batches give several index entries.
        all.put("index.interval.bytes", "500");
        return new NewTopic(name, 1, (short) 1).configs(all);
    }

    private KafkaProducer<byte[], byte[]> producer(String codec, String transactionalId) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("compression.type", codec);
        // Batches are ended by flush(), never by the clock.
        properties.put("linger.ms", "60000");
        properties.put("enable.idempotence", transactionalId == null ? "false" : "true");
        if (transactionalId != null) {
            properties.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void writeCounted(String topic, String codec, long intervalMs) {
        try (KafkaProducer<byte[], byte[]> producer = producer(codec, null)) {
            for (int number = 0; number < RECORDS; number++) {
                long time = START_MS + number * intervalMs;
                producer.send(record(topic, time, "key-" + number % 7, "value " + number + " of " + topic));
                if (number % RECORDS_PER_BATCH == RECORDS_PER_BATCH - 1) {
                    producer.flush();
                }
            }
        }
    }

    private void writeOddRecords() {
        String topic = "odd-records";
        try (KafkaProducer<byte[], byte[]> producer = producer("none", null)) {
            producer.send(record(topic, START_MS, null, null));
            producer.send(record(topic, START_MS, "", ""));
            producer.send(record(topic, START_MS, null, "no key"));
            producer.send(record(topic, START_MS, "no value", null));
            producer.send(record(topic, START_MS - 5, "késé", "größer, 日本, 🙂"));
            producer.send(new ProducerRecord<>(topic, 0, START_MS, new byte[] {0, -1}, new byte[] {-64, -128, 10, 9}));
            ProducerRecord<byte[], byte[]> headers = record(topic, START_MS + 1, "headers", "three");
            headers.headers().add(new RecordHeader("a", bytes("1")));
            headers.headers().add(new RecordHeader("a", null));
            headers.headers().add(new RecordHeader("", new byte[0]));
            producer.send(headers);
            producer.flush();
            producer.send(record(topic, START_MS + 2, "large", "x".repeat(5000)));
        }
    }

    private void writeTransactions() {
        try (KafkaProducer<byte[], byte[]> producer = producer("none", "golden")) {
            producer.initTransactions();
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                for (int record = 0; record < 3; record++) {
                    producer.send(record("transactions", START_MS + number, "t" + number, "record " + record));
                }
                producer.flush();
                if (number % 3 == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }

    private void writeCompacted() {
        try (KafkaProducer<byte[], byte[]> producer = producer("lz4", null)) {
            for (int round = 0; round < 8; round++) {
                for (int key = 0; key < 10; key++) {
                    String value = key == round ? null : "round " + round;
                    producer.send(record("compacted", START_MS + round * 60_000L, "key-" + key, value));
                }
                producer.flush();
            }
        }
    }

    /** Reads a topic as two groups that commit; their offsets, and the group's end, go to the internal topic. */
    private void commitOffsets() {
        for (String group : List.of("golden-group", "golden-group-2")) {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", bootstrap);
            properties.put("group.id", group);
            properties.put("auto.offset.reset", "earliest");
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of("plain"));
                for (int read = 0; read < RECORDS; ) {
                    read += consumer.poll(Duration.ofSeconds(10)).count();
                }
                consumer.commitSync();
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, long timestamp, String key, String value) {
        return new ProducerRecord<>(topic, 0, timestamp, bytes(key), bytes(value));
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }
}
