import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints facts of a release as tab-separated lines: the constants of enums, and the settings of topics.
 *
 * Arguments: CLASS#NUMBER, an enum and the method or field with a constant's number.
 */
public class PrintFacts {
    public static void main(String[] enums) throws Exception {
        for (String each : enums) {
            int hash = each.indexOf('#');
            for (Object constant : Class.forName(each.substring(0, hash)).getEnumConstants())
                print(each, ((Enum<?>) constant).name(), String.valueOf(number(constant, each.substring(hash + 1))));
        }
        Object settings = Class.forName("org.apache.kafka.storage.internals.log.LogConfig").getMethod("configKeys").invoke(null);
        for (Object value : new TreeMap<>((Map<?, ?>) settings).values()) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) value;
            if (!key.internalConfig)
                print("settings", key.name, key.type + " " + ConfigDef.convertToString(key.defaultValue, key.type));
        }
    }

    private static Object number(Object constant, String name) throws Exception {
        Class<?> type = constant.getClass();
        while (type.getSuperclass() != Enum.class)
            type = type.getSuperclass();
        for (Method method : type.getDeclaredMethods())
            if (method.getName().equals(name) && method.getParameterCount() == 0) {
                method.setAccessible(true);
                return method.invoke(constant);
            }
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(constant);
    }

    private static void print(String... columns) {
        System.out.println(String.join("\t", columns));
    }
}
