package import FreshetHelper
import Glibc

/// The process in which answers are unpacked.
///
/// Archives are untrusted, and their formats are complex. So they are read in a separate process with few rights: the
/// input on descriptor 0, the output on descriptor 1, a report on descriptor 2, no other file, no network, limits on
/// memory and processor time, and a sandbox (``FreshetHelper/HelperSandbox``). It unpacks one input and ends.
package enum UnpackHelper {
    /// The command-line argument that makes a program run as a helper; the arguments of ``UnpackRequest`` follow.
    package static let argument = "--unpack-helper"
    /// The writable memory of a helper, in bytes: enough for the largest window that zstd(1) and xz(1) use with their
    /// levels, 128 MiB.
    package static let memoryLimit: UInt64 = 160 << 20
    /// The most processor time, in seconds: a gigabyte of bzip2 takes half of it.
    package static let processorLimit: UInt64 = 120
    /// The address space, in bytes: libarchive needs libraries whose data is mapped and hardly used.
    private static let addressLimit: UInt64 = 512 << 20

    /// The environment with which a helper is started.
    package static let environment = ["SWIFT_BACKTRACE": "enable=no"]

    /// Unpacks standard input to standard output, and writes the report to standard error. Call it first in a new
    /// process.
    package static func main() -> Never {
        let report = report(on: UnpackRequest(arguments: CommandLine.arguments.dropFirst(2)))
        _ = report.bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(report.status == .done ? 0 : 1)
    }

    private static func report(on request: UnpackRequest?) -> UnpackReport {
        guard let request else { return UnpackReport(.unavailable, message: "the arguments of the helper are invalid") }
        clearenv()
        // Otherwise the C library looks for the zone's file, and libarchive for tables of character sets.
        setenv("TZ", "UTC0", 1)
        tzset()
        setlocale(LC_CTYPE, "C.UTF-8")
        var gaps: HelperSandbox.Gaps = []
        do throws(UnpackError) {
            // Before the sandbox, in which no file can be opened.
            let library = request.format == .gzip ? nil : try ArchiveLibrary()
            let input = try InputFile(STDIN_FILENO)
            do throws(HelperSandbox.Failure) {
                gaps = try confine()
            } catch {
                return UnpackReport(.notConfined, message: error.description)
            }
            let unpacker = ContentUnpacker(request, library)
            try unpacker.unpack(input) { (bytes) throws(UnpackError) in try send(bytes) }
            return UnpackReport(.done, gaps: gaps)
        } catch {
            return UnpackReport(error.status, gaps: gaps, message: error.message)
        }
    }

    /// Confines this process permanently. The process must have one thread.
    package static func confine() throws(HelperSandbox.Failure) -> HelperSandbox.Gaps {
        let gaps = try HelperSandbox.denyObjects()
        limit(RLIMIT_AS, to: addressLimit)
        limit(RLIMIT_DATA, to: memoryLimit)
        limit(RLIMIT_CPU, to: processorLimit)
        limit(RLIMIT_CORE, to: 0)
        // The three standard descriptors are in use, so the process cannot open anything.
        limit(RLIMIT_NOFILE, to: 3)
        // An archive is read at several places.
        return gaps.union(try HelperSandbox.filterSystemCalls(seeks: true))
    }

    /// Sets a soft and a hard limit. It fails only if the present hard limit is lower, which is stricter.
    private static func limit(_ resource: __rlimit_resource, to value: UInt64) {
        var limit = rlimit(rlim_cur: rlim_t(value), rlim_max: rlim_t(value))
        setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
    }

    private static func send(_ bytes: UnsafeRawBufferPointer) throws(UnpackError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = write(STDOUT_FILENO, rest.baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else {
                throw UnpackError("the helper cannot write its output", status: .unavailable)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }
}
