import com.oracle.bmc.model.BmcException;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** What the program says of what it checked, and how it compares. */
final class Checks {
    private Checks() {}

    /** Says that something of an operation is as it must be. */
    static void ok(String operation, String what) {
        System.out.println("ok\t" + operation + "\t" + what);
    }

    /** Says that the SDK has no words for an operation. */
    static void none(String operation, String why) {
        System.out.println("none\t" + operation + "\t" + why);
    }

    /** Fails unless both are the same throughout. */
    static void same(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    /** A list that may hold null. */
    static List<Object> list(Object... of) {
        return Arrays.asList(of);
    }

    /** A call that is to be refused. */
    interface Call {
        Object run() throws Exception;
    }

    /** Fails unless the call is refused with this status and code. */
    static BmcException refused(int status, String code, Call call) throws Exception {
        try {
            call.run();
        } catch (BmcException e) {
            same(list(e.getStatusCode(), e.getServiceCode()), list(status, code), e.getMessage());
            same(e.getOpcRequestId() != null, true, "request id");
            return e;
        }
        throw new AssertionError("not refused with " + status + " " + code);
    }
}
