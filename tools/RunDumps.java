import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Runs DumpLogSegments many times in one JVM, each run's output in files of its own.
 *
 * Arguments: a file with a run's arguments per line, separated by tabs, and a directory for NUMBER.out, NUMBER.err and
 * NUMBER.status. Of a run that dies only the status is worth using: its trace would hold this class's frames.
 */
public final class RunDumps {
    private static final List<String> CLASSES =
            List.of("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments");
    /** Names of the class by which the tool ends the JVM: since 4.4, and before. */
    private static final List<String> EXITS =
            List.of("org.apache.kafka.common.utils.internals.Exit", "org.apache.kafka.common.utils.Exit");

    /** Thrown where the tool would end the JVM. */
    private static final class Ended extends RuntimeException {
        private final int status;

        private Ended(int status) {
            this.status = status;
        }
    }

    /** Where the tool prints to at the moment. Scala's console keeps the stream that it saw first, so that one stays. */
    private static final class Target extends FilterOutputStream {
        private Target() {
            super(new ByteArrayOutputStream());
        }

        private byte[] take() {
            byte[] bytes = ((ByteArrayOutputStream) out).toByteArray();
            out = new ByteArrayOutputStream();
            return bytes;
        }

        @Override
        public void write(byte[] bytes, int start, int size) throws IOException {
            out.write(bytes, start, size);
        }
    }

    public static void main(String[] args) throws Exception {
        Target out = new Target();
        Target err = new Target();
        System.setOut(stream(out));
        System.setErr(stream(err));
        trapExits();
        Method tool = first(CLASSES).getMethod("main", String[].class);
        Path results = Path.of(args[1]);
        int number = 0;
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            int status = run(tool, line.split("\t"));
            Files.write(results.resolve(number + ".out"), taken(System.out, out));
            Files.write(results.resolve(number + ".err"), taken(System.err, err));
            Files.writeString(results.resolve(number + ".status"), Integer.toString(status));
            number++;
        }
    }

    private static PrintStream stream(OutputStream target) {
        return new PrintStream(target, true, StandardCharsets.UTF_8);
    }

    private static byte[] taken(PrintStream stream, Target target) {
        stream.flush();
        return target.take();
    }

    private static void trapExits() throws ReflectiveOperationException {
        Class<?> exit = first(EXITS);
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object trap = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (proxy, method, values) -> {
            throw new Ended((int) values[0]);
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, trap);
    }

    /** Returns the first of these classes that is on the class path. */
    private static Class<?> first(List<String> names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException e) {
                // the other name, then
            }
        }
        throw new IllegalStateException("none of these is on the class path: " + names);
    }

    private static int run(Method tool, String[] arguments) throws IllegalAccessException {
        try {
            tool.invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException e) {
            return e.getCause() instanceof Ended ended ? ended.status : 1;
        }
    }
}
