import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.AbstractApiMessageSerde;

/**
 * Writes messages by Kafka's own serializers: one request after another on standard input, an answer to each on
 * standard output.
 *
 * A request is a line: frame, class, version, and the message as Kafka's JSON, a blank between them. The answer is the
 * message's bytes in hex, and the JSON that Kafka's converter makes of it; or `!` and what was wrong. Frames: `bare`
 * the message alone; `key`, `value` with the type or version before it, as CoordinatorRecordSerde writes them; `record`
 * with frame version, type and version, as AbstractApiMessageSerde does.
 */
public final class WriteMessages {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] request = line.split(" ", 4);
            try {
                out.println(answer(request[0], Class.forName(request[1]), Short.parseShort(request[2]), request[3]));
            } catch (ReflectiveOperationException | RuntimeException error) {
                out.println("! " + (error.getCause() == null ? error : error.getCause()));
            }
        }
    }

    private static String answer(String frame, Class<?> type, short version, String json)
            throws ReflectiveOperationException, IOException {
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        Object message = converter.getMethod("read", JsonNode.class, short.class)
            .invoke(null, MAPPER.readTree(json), version);
        JsonNode written = (JsonNode) converter.getMethod("write", type, short.class).invoke(null, message, version);
        return HexFormat.of().formatHex(bytes(frame, (Message) message, version)) + " " + written;
    }

    private static byte[] bytes(String frame, Message message, short version) {
        return switch (frame) {
            case "bare" -> array(MessageUtil.toByteBufferAccessor(message, version).buffer());
            case "key" -> MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) message);
            case "value" -> MessageUtil.toVersionPrefixedBytes(version, message);
            case "record" -> record(new ApiMessageAndVersion((ApiMessage) message, version));
            default -> throw new IllegalArgumentException("no frame " + frame);
        };
    }

    private static byte[] record(ApiMessageAndVersion message) {
        AbstractApiMessageSerde serde = new AbstractApiMessageSerde() {
            @Override
            public ApiMessage apiMessageFor(short apiKey) {
                throw new UnsupportedOperationException("nothing is read here");
            }
        };
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(message, cache));
        serde.write(message, cache, new ByteBufferAccessor(buffer));
        buffer.flip();
        return array(buffer);
    }

    private static byte[] array(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
