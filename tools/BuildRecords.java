import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * Builds batches as Kafka's own classes do, and reads batches that others built: one request after another on standard
 * input, an answer to each on standard output, all in Java's DataOutput.
 *
 * A request is a batch's settings, its records, and bytes to read. The answer is what Kafka built of the records, and
 * what it read from the bytes: of each record offset, timestamp, key, value and headers.
 */
public final class BuildRecords {
    private final DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    private final DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));

    public static void main(String[] arguments) throws IOException {
        new BuildRecords().run();
    }

    private void run() throws IOException {
        while (true) {
            byte magic;
            try {
                magic = in.readByte();
            } catch (EOFException end) {
                return;
            }
            answer(build(magic));
            read(in.readNBytes(in.readInt()));
            out.flush();
        }
    }

    private byte[] build(byte magic) throws IOException {
        CompressionType codec = CompressionType.forId(in.readByte());
        TimestampType timestampType = TimestampType.forName(in.readUTF());
        long baseOffset = in.readLong();
        long logAppendTime = in.readLong();
        long producerId = in.readLong();
        short producerEpoch = in.readShort();
        int baseSequence = in.readInt();
        boolean isTransactional = in.readBoolean();
        boolean isControl = in.readBoolean();
        int leaderEpoch = in.readInt();
        long deleteHorizon = in.readLong();
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            buffer, magic, Compression.of(codec).build(), timestampType, baseOffset, logAppendTime, producerId,
            producerEpoch, baseSequence, isTransactional, isControl, leaderEpoch, Integer.MAX_VALUE, deleteHorizon);
        for (int left = in.readInt(); left > 0; left--) {
            long offset = in.readLong();
            long timestamp = in.readLong();
            byte[] key = bytes();
            byte[] value = bytes();
            Header[] headers = headers();
            if (isControl) {
                ControlRecordType type = ControlRecordType.parse(ByteBuffer.wrap(key));
                int coordinatorEpoch = ByteBuffer.wrap(value).getInt(2);
                builder.appendEndTxnMarker(timestamp, new EndTransactionMarker(type, coordinatorEpoch));
            } else if (headers.length == 0) {
                builder.appendWithOffset(offset, timestamp, key, value);
            } else {
                builder.appendWithOffset(offset, timestamp, key, value, headers);
            }
        }
        MemoryRecords records = builder.build();
        ByteBuffer built = records.buffer().duplicate();
        byte[] result = new byte[built.remaining()];
        built.get(result);
        return result;
    }

    private byte[] bytes() throws IOException {
        int size = in.readInt();
        return size < 0 ? null : in.readNBytes(size);
    }

    private Header[] headers() throws IOException {
        Header[] headers = new Header[in.readInt()];
        for (int index = 0; index < headers.length; index++) {
            headers[index] = new RecordHeader(new String(bytes(), StandardCharsets.UTF_8), bytes());
        }
        return headers;
    }

    private void read(byte[] raw) throws IOException {
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(raw)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                out.writeBoolean(true);
                out.writeLong(record.offset());
                out.writeLong(record.timestamp());
                answer(record.hasKey() ? array(record.key()) : null);
                answer(record.hasValue() ? array(record.value()) : null);
                out.writeInt(record.headers().length);
                for (Header header : record.headers()) {
                    answer(header.key().getBytes(StandardCharsets.UTF_8));
                    answer(header.value());
                }
            }
        }
        out.writeBoolean(false);
    }

    private static byte[] array(ByteBuffer content) {
        byte[] copy = new byte[content.remaining()];
        content.get(copy);
        return copy;
    }

    private void answer(byte[] content) throws IOException {
        out.writeInt(content == null ? -1 : content.length);
        if (content != null) {
            out.write(content);
        }
    }
}
