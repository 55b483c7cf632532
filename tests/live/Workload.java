import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Does to a cluster what its users do: `Workload BOOTSTRAP PHASE [LOG_DIR]`. Phase `fill` ends by itself; `live` prints
 * "ready" once all members are there and transactions are open, and ends at the end of its standard input.
 */
public class Workload {
    private static final short REPLICAS = 3;
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        switch (arguments[1]) {
            case "fill" -> fill();
            case "change" -> change(arguments[2]);
            case "live" -> live();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    // --- topics and records ------------------------------------------------------------------------------------------

    private static void fill() throws Exception {
        try (Admin admin = Admin.create(common())) {
            Map<String, String> small = Map.of("internal.segment.bytes", "20000");
            Map<String, String> compacted = new HashMap<>(small);
            compacted.putAll(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01"));
            admin.createTopics(List.of(
                topic("plain", 3, small), topic("compacted", 2, compacted), topic("deleted", 2, small),
                topic("moved", 2, small), topic("transactions", 2, small), topic("copied", 2, small),
                topic("shared", 2, small), topic("hanging", 1, small), topic("times", 1, Map.of(
                    "internal.segment.bytes", "20000", "message.timestamp.type", "LogAppendTime")))).all().get();
        }
        produce("plain", 3000, 3000, "lz4");
        produce("compacted", 4000, 100, "none");
        produce("deleted", 2000, 2000, "none");
        produce("moved", 2000, 2000, "zstd");
        produce("shared", 500, 500, "none");
        produce("times", 800, 800, "gzip");
        transactions("ended", 40);
    }

    private static NewTopic topic(String name, int partitions, Map<String, String> settings) {
        return new NewTopic(name, partitions, REPLICAS).configs(settings);
    }

    private static void produce(String topic, int records, int keys, String compression) {
        Properties settings = common();
        settings.put("compression.type", compression);
        settings.put("batch.size", "4000");
        try (KafkaProducer<String, String> producer = producer(settings)) {
            for (int i = 0; i < records; i++) {
                producer.send(new ProducerRecord<>(topic, "key-" + i % keys, "value " + i + " of " + topic));
            }
        }
    }

    /** Every third one is aborted; some commit offsets of a group too. */
    private static void transactions(String id, int count) throws Exception {
        try (KafkaProducer<String, String> producer = transactional(id)) {
            for (int i = 0; i < count; i++) {
                producer.beginTransaction();
                for (int j = 0; j < 20; j++) {
                    producer.send(new ProducerRecord<>("transactions", "t" + i + "-" + j, "value " + i));
                }
                if (i % 2 == 0) {
                    var offsets = Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(i, "of " + i));
                    producer.sendOffsetsToTransaction(
                        offsets, new org.apache.kafka.clients.consumer.ConsumerGroupMetadata("by-transactions"));
                }
                if (i % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }

    // --- what administrators do ----------------------------------------------------------------------------------------

    private static void change(String otherDirectory) throws Exception {
        try (Admin admin = Admin.create(common())) {
            admin.deleteRecords(Map.of(
                new TopicPartition("deleted", 0), RecordsToDelete.beforeOffset(700),
                new TopicPartition("deleted", 1), RecordsToDelete.beforeOffset(3))).all().get();
            admin.alterReplicaLogDirs(Map.of(
                new TopicPartitionReplica("plain", 1, 1), otherDirectory,
                new TopicPartitionReplica("transactions", 0, 1), otherDirectory)).all().get();
            admin.alterPartitionReassignments(Map.of(
                new TopicPartition("moved", 0), Optional.of(new NewPartitionReassignment(List.of(3, 2))),
                new TopicPartition("moved", 1), Optional.of(new NewPartitionReassignment(List.of(1))))).all().get();
            admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.TOPIC, "plain"),
                List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "900000000"), AlterConfigOp.OpType.SET))))
                .all().get();
            admin.createTopics(List.of(topic("short-lived", 1, Map.of()))).all().get();
            admin.deleteTopics(List.of("short-lived")).all().get();
            while (!admin.listPartitionReassignments().reassignments().get().isEmpty()) {
                Thread.sleep(200);
            }
        }
    }

    // --- groups and open transactions ------------------------------------------------------------------------------------

    private static void live() throws Exception {
        consumer("classic-group", "classic", "plain", 400);
        consumer("classic-group", "classic", "plain", 400);
        consumer("consumer-group", "consumer", "plain", 300);
        consumer("consumer-group", "consumer", "plain", 300);
        share("share-group");
        streams("streams-classic", "classic");
        streams("streams-new", "streams");
        empty("left-classic", "classic");
        empty("left-consumer", "consumer");
        KafkaProducer<String, String> producer = transactional("open-now");
        producer.beginTransaction();
        for (int i = 0; i < 10; i++) {
            long longAgo = System.currentTimeMillis() - 7_200_000; // the producer's word, which proves nothing
            producer.send(new ProducerRecord<>("transactions", i % 2, longAgo, "open", "value " + i));
        }
        producer.flush();
        transactions("ended-late", 5);
        settle();
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        System.exit(0); // as a machine that is switched off: nobody leaves, nothing is aborted
    }

    private static void settle() throws Exception {
        Set<String> wanted = Set.of("classic-group", "consumer-group", "share-group", "streams-classic", "streams-new");
        try (Admin admin = Admin.create(common())) {
            int calm = 0;
            while (calm < 10) {
                long stable = admin.listGroups().all().get().stream().filter(
                    group -> wanted.contains(group.groupId())
                        && group.groupState().map(Object::toString).orElse("").equals("Stable")).count();
                calm = stable == wanted.size() ? calm + 1 : 0;
                Thread.sleep(500);
            }
        }
    }

    /** Reads some records, commits where it stands, and goes on being a member. */
    private static void consumer(String group, String protocol, String topic, int commit)
            throws Exception {
        CountDownLatch committed = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            try (Consumer<String, String> consumer = new KafkaConsumer<>(
                    reading(group, protocol), Serdes.String().deserializer(), Serdes.String().deserializer())) {
                consumer.subscribe(List.of(topic));
                int seen = 0;
                while (true) {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                    seen += records.count();
                    if (committed.getCount() > 0 && !consumer.assignment().isEmpty() && seen >= commit) {
                        consumer.commitSync();
                        committed.countDown();
                    }
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
        committed.await();
    }

    private static void share(String group) throws Exception {
        try (Admin admin = Admin.create(common())) {
            admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.GROUP, group),
                List.of(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET))))
                .all().get();
        }
        CountDownLatch read = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            Properties settings = common();
            settings.put("group.id", group);
            settings.put("max.poll.records", "100");
            try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
                    settings, Serdes.String().deserializer(), Serdes.String().deserializer())) {
                consumer.subscribe(List.of("shared"));
                int seen = 0;
                while (true) {
                    seen += consumer.poll(Duration.ofMillis(200)).count();
                    if (seen >= 100) {
                        read.countDown();
                    }
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
        read.await();
    }

    private static void streams(String application, String protocol) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("copied").groupBy((key, value) -> value).count();
        builder.<String, String>stream("plain").to("copied");
        Properties settings = common();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir") + "/" + application);
        settings.put("group.protocol", protocol);
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("auto.offset.reset", "earliest");
        settings.put("commit.interval.ms", "500");
        settings.put("repartition.purge.interval.ms", "500");
        if (protocol.equals("classic")) {
            settings.put("processing.guarantee", "exactly_once_v2");
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
    }

    /** A group that committed and whose members have gone. */
    private static void empty(String group, String protocol) {
        try (Consumer<String, String> consumer = new KafkaConsumer<>(
                reading(group, protocol), Serdes.String().deserializer(), Serdes.String().deserializer())) {
            consumer.subscribe(List.of("times"));
            while (consumer.poll(Duration.ofMillis(200)).isEmpty()) { }
            consumer.commitSync();
        }
    }

    // --- settings --------------------------------------------------------------------------------------------------------

    private static Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private static Properties reading(String group, String protocol) {
        Properties settings = common();
        settings.putAll(Map.of(
            "group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        return settings;
    }

    private static KafkaProducer<String, String> producer(Properties settings) {
        return new KafkaProducer<>(settings, Serdes.String().serializer(), Serdes.String().serializer());
    }

    private static KafkaProducer<String, String> transactional(String id) {
        Properties settings = common();
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", "600000");
        KafkaProducer<String, String> producer = producer(settings);
        producer.initTransactions();
        return producer;
    }
}
