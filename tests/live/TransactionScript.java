import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Producers that do what the lines of standard input say: `TransactionScript BOOTSTRAP`. Each line is answered by "ok",
 * with the offsets of what was sent, or by the name of what was thrown. Killed, it leaves its transactions open.
 */
public class TransactionScript {
    private static final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
        Runtime.getRuntime().halt(0); // as a machine that is switched off: nothing is aborted
    }

    private static String answer(String[] words) {
        try {
            return "ok" + done(words);
        } catch (Exception thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            return cause.getClass().getSimpleName();
        }
    }

    private static String done(String[] words) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.get(words[1]);
        switch (words[0]) {
            case "open" -> open(words[1], words[2], words[3]);
            case "begin" -> producer.beginTransaction();
            case "send" -> {
                return send(producer, words);
            }
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    /** `open NAME TRANSACTIONAL_ID TIMEOUT_MS`; id "-" for none. */
    private static void open(String name, String id, String timeout) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("linger.ms", "20");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        if (!id.equals("-")) {
            settings.put("transactional.id", id);
            settings.put("transaction.timeout.ms", timeout);
        }
        producers.put(name, new KafkaProducer<>(settings));
        if (!id.equals("-")) {
            producers.get(name).initTransactions();
        }
    }

    /** `send NAME TOPIC PARTITION TIMESTAMP COUNT VALUE`: the values are VALUE.0, VALUE.1 and so on. */
    private static String send(KafkaProducer<byte[], byte[]> producer, String[] words) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(words[5]); i++) {
            byte[] value = (words[6] + "." + i).getBytes();
            sent.add(producer.send(new ProducerRecord<>(
                words[2], Integer.parseInt(words[3]), Long.parseLong(words[4]), null, value)));
        }
        producer.flush();
        StringBuilder offsets = new StringBuilder();
        for (Future<RecordMetadata> each : sent) {
            offsets.append(" ").append(each.get().offset());
        }
        return offsets.toString();
    }
}
