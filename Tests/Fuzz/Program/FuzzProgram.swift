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
        // libFuzzer takes all arguments for its own, also for the processes that it starts (-fork, -merge, -minimize_crash).
        setenv(variable, target.name, 1)
        let isNamed = inherited == nil
        var arguments = CommandLine.unsafeArgv + (isNamed ? 1 : 0)
        arguments[0] = CommandLine.unsafeArgv[0]
        var count = CommandLine.argc - (isNamed ? 1 : 0)
        exit(runDriver(&count, &arguments, testOneInput))
    }
}

/// In which a process that libFuzzer starts finds the target.
private let variable = "FRESHET_FUZZ_TARGET"
private let inherited = getenv(variable).map { String(cString: $0) }
private let target = (inherited ?? CommandLine.arguments.dropFirst().first).flatMap { FuzzTargets.named($0) }

/// Of libFuzzer's library: goes on until its arguments let it end, or an input ends the process.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Under this name libFuzzer's own `main` looks for it, which is linked beside the one above.
@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // -1: not to be kept as a seed.
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
