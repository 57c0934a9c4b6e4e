import Glibc

/// libFuzzer on one target: `freshet-fuzz TARGET [ARGUMENT…]`, with the arguments of libFuzzer
/// (https://llvm.org/docs/LibFuzzer.html).
@main struct FuzzProgram {
    static func main() {
        guard let target else {
            print(
                "usage: freshet-fuzz TARGET [ARGUMENT…]; targets: \(FuzzTargets.all.map(\.name).joined(separator: " "))"
            )
            exit(64)
        }
        // libFuzzer uses all arguments itself, also in the processes that it starts (-fork, -merge, -minimize_crash).
        setenv(variable, target.name, 1)
        let isNamed = inherited == nil
        var arguments = CommandLine.unsafeArgv + (isNamed ? 1 : 0)
        arguments[0] = CommandLine.unsafeArgv[0]
        var count = CommandLine.argc - (isNamed ? 1 : 0)
        exit(runDriver(&count, &arguments, testOneInput))
    }
}

/// The environment variable that names the target for processes that libFuzzer starts.
private let variable = "FRESHET_FUZZ_TARGET"
private let inherited = getenv(variable).map { String(cString: $0) }
private let target = (inherited ?? CommandLine.arguments.dropFirst().first).flatMap { FuzzTargets.named($0) }

/// The main function of libFuzzer's library: it returns when its arguments say so, unless an input ends the process.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// libFuzzer's own `main`, which is linked too, requires this name.
@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // -1: libFuzzer does not keep the input as a seed.
    guard let target, count <= target.limit else { return -1 }
    do throws(FuzzViolation) {
        try target.check(Array(UnsafeBufferPointer(start: bytes, count: count)))
    } catch {
        let words = "\(target.name): this does not hold: \(error)\n"
        write(STDERR_FILENO, words, words.utf8.count)
        abort()
    }
    return 0
}
