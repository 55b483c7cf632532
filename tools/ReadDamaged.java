import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Appends a record to topics whose files may be damaged, and reads them in all ways. It serves requests until standard input
 * ends, since a start of Java takes longer than a request. A request is a line `BOOTSTRAP GROUP TIME...`, a line per topic
 * with its name and offsets to read from, and an empty line. A partition that fails is left out of the rest of the request,
 * and doesn't disturb the others.
 *
 * Prints lines of words: `topic NAME`, `commit TOPIC OFFSET`, `record LEVEL TOPIC OFFSET DIGEST` (`new` if it is the appended
 * one), `sought TOPIC OFFSET FIRST`, `time TOPIC TIME OFFSET` (-1 if there is none), and `end` after each request.
 */
public final class ReadDamaged {
    private static final byte[] NEW = "appended at the end".getBytes();
    private static final long SILENCE_MS = 1_500;
    private static final Duration PATIENCE = Duration.ofMillis(2_000);

    private final String bootstrap;

    private ReadDamaged(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String request = lines.readLine(); request != null; request = lines.readLine()) {
            String[] words = request.split(" ");
            try {
                new ReadDamaged(words[0]).run(words[1], Arrays.copyOfRange(words, 2, words.length), lines);
            } catch (KafkaException failed) {
                System.out.println("failed " + failed);
            }
            System.out.println("end");
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // no thread of a client is waited for
    }

    private void run(String group, String[] times, BufferedReader lines) throws Exception {
        Map<TopicPartition, List<Long>> offsets = new HashMap<>();
        Set<String> known = known(group);
        for (String line = lines.readLine(); !line.isEmpty(); line = lines.readLine()) {
            String[] words = line.split(" ");
            if (known.contains(words[0])) {
                offsets.put(new TopicPartition(words[0], 0), Arrays.stream(words).skip(1).map(Long::valueOf).toList());
            }
        }
        append(offsets.keySet());
        Set<TopicPartition> readable = read("read_uncommitted", offsets.keySet());
        read("read_committed", readable);
        seek(readable, offsets);
        lookUp(readable, times);
    }

    private Set<String> known(String group) throws Exception {
        Set<String> names = new HashSet<>();
        try (Admin admin = Admin.create(Map.of(
                "bootstrap.servers", bootstrap, "request.timeout.ms", "4000", "default.api.timeout.ms", "6000"))) {
            names.addAll(admin.listTopics().names().get(6, TimeUnit.SECONDS));
            names.forEach(name -> System.out.println("topic " + name));
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(6, TimeUnit.SECONDS).forEach(
                (partition, offset) -> System.out.println("commit " + partition.topic() + " " + offset.offset()));
        } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException failed) {
            System.out.println("failed " + failed);
        }
        return names;
    }

    private void append(Collection<TopicPartition> partitions) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "enable.idempotence", "false", "max.block.ms", "2000", "linger.ms", "0",
            "request.timeout.ms", "1500", "delivery.timeout.ms", "2000");
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        for (TopicPartition each : partitions) {
            producer.send(new ProducerRecord<>(each.topic(), 0, 1_704_067_200_000L, "appended".getBytes(), NEW));
        }
        producer.flush();
        producer.close(Duration.ZERO);
    }

    /** Prints the records of all partitions; returns the partitions that have some. */
    private Set<TopicPartition> read(String level, Collection<TopicPartition> partitions) {
        Set<TopicPartition> found = new HashSet<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(level)) {
            Map<TopicPartition, Long> pending = ends(consumer, partitions);
            consumer.assign(pending.keySet());
            consumer.seekToBeginning(pending.keySet());
            long news = System.currentTimeMillis();
            while (!pending.isEmpty() && System.currentTimeMillis() < news + SILENCE_MS) {
                for (ConsumerRecord<byte[], byte[]> record : poll(consumer, pending)) {
                    news = System.currentTimeMillis();
                    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                    found.add(partition);
                    System.out.println(
                        "record " + level + " " + record.topic() + " " + record.offset() + " " + digest(record));
                }
                pending.entrySet().removeIf(each -> position(consumer, each.getKey()) >= each.getValue());
            }
        }
        return found;
    }

    private static long position(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
        try {
            return consumer.position(partition, Duration.ofMillis(100));
        } catch (KafkaException failed) {
            return -1;
        }
    }

    private static Map<TopicPartition, Long> ends(
            KafkaConsumer<byte[], byte[]> consumer, Collection<TopicPartition> partitions) {
        try {
            return new HashMap<>(consumer.endOffsets(partitions, PATIENCE));
        } catch (KafkaException failed) {
            Map<TopicPartition, Long> each = new HashMap<>();
            for (TopicPartition partition : partitions) {
                try {
                    each.putAll(consumer.endOffsets(List.of(partition), Duration.ofMillis(300)));
                } catch (KafkaException again) {
                    System.out.println("failed " + partition.topic());
                }
            }
            return each;
        }
    }

    /** Polls; a partition that fails is assigned no longer. */
    private static Iterable<ConsumerRecord<byte[], byte[]>> poll(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> pending) {
        try {
            return consumer.poll(Duration.ofMillis(100));
        } catch (KafkaException failed) {
            String text = failed + " " + failed.getCause();
            List<TopicPartition> left = new ArrayList<>(consumer.assignment());
            left.removeIf(partition -> text.contains(partition.toString()));
            pending.keySet().retainAll(left);
            if (left.size() == consumer.assignment().size()) {
                pending.clear(); // nobody knows which one failed
            }
            consumer.assign(left);
            return List.of();
        }
    }

    private void seek(Collection<TopicPartition> partitions, Map<TopicPartition, List<Long>> offsets) {
        int turns = offsets.values().stream().mapToInt(List::size).max().orElse(0);
        Set<TopicPartition> sound = new HashSet<>(partitions);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted")) {
            for (int turn = 0; turn < turns; turn++) {
                Map<TopicPartition, Long> pending = new HashMap<>();
                for (TopicPartition each : sound) {
                    if (turn < offsets.get(each).size()) {
                        pending.put(each, offsets.get(each).get(turn));
                    }
                }
                consumer.assign(pending.keySet());
                pending.forEach(consumer::seek);
                long end = System.currentTimeMillis() + SILENCE_MS;
                while (!pending.isEmpty() && System.currentTimeMillis() < end) {
                    for (ConsumerRecord<byte[], byte[]> record : poll(consumer, pending)) {
                        Long wanted = pending.remove(new TopicPartition(record.topic(), 0));
                        if (wanted != null) {
                            System.out.println("sought " + record.topic() + " " + wanted + " " + record.offset());
                        }
                    }
                }
                sound.removeAll(pending.keySet());
            }
        }
    }

    private void lookUp(Collection<TopicPartition> partitions, String[] times) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted")) {
            for (String time : times) {
                if (!lookUp(consumer, partitions, time)) {
                    for (TopicPartition partition : partitions) {
                        if (!lookUp(consumer, List.of(partition), time)) {
                            System.out.println("failed " + partition.topic());
                        }
                    }
                }
            }
        }
    }

    /** Prints the offsets of a time; returns whether all partitions have answered. */
    private static boolean lookUp(
            KafkaConsumer<byte[], byte[]> consumer, Collection<TopicPartition> partitions, String time) {
        Map<TopicPartition, Long> asked = new HashMap<>();
        partitions.forEach(each -> asked.put(each, Long.valueOf(time)));
        try {
            consumer.offsetsForTimes(asked, Duration.ofMillis(500)).forEach((each, found) -> System.out.println(
                "time " + each.topic() + " " + time + " " + (found == null ? -1 : found.offset())));
            return true;
        } catch (KafkaException failed) {
            return false;
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer(String level) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "isolation.level", level, "enable.auto.commit", "false",
            "auto.offset.reset", "earliest", "fetch.max.wait.ms", "50", "default.api.timeout.ms", "2000",
            "max.poll.records", "100000");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static String digest(ConsumerRecord<byte[], byte[]> record) {
        if (Arrays.equals(record.value(), NEW)) {
            return "new";
        }
        int hash = Objects.hash(record.timestamp(), Arrays.hashCode(record.key()), Arrays.hashCode(record.value()));
        return Integer.toHexString(hash);
    }
}
