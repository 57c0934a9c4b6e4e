// A process of one thread whose boot clock jumps for real, as after a sleep of the machine: on `j` at its standard input
// it enters a time name space (time_namespaces(7)) whose boot clock is two hours ahead. The kernel lets only a
// process of one thread do that, so the test, which has many, runs this one.
//
// Timers of the kernel do not jump with it, and the wall clock is not set, so nothing wakes the loop then: any other
// byte does.
//
// It prints what it receives, in order: `armed`, then `resume …` and `timer`.
import FreshetEventLoop
import FreshetSignals
import FreshetSystemSignals
import Glibc

func printLine(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(1, bytes, bytes.count)
}

func check(_ result: Int32, _ call: String) {
    guard result < 0 else { return }
    printLine("\(call): \(String(cString: strerror(errno)))")
    exit(1)
}

/// unshare(2) and setns(2), which the Glibc module leaves out.
func enterTimeTwoHoursLater() {
    let newTime: Int32 = 0x80  // CLONE_NEWTIME
    guard let unshareCall = dlsym(nil, "unshare"), let setnsCall = dlsym(nil, "setns") else { exit(1) }
    let unshare = unsafeBitCast(unshareCall, to: (@convention(c) (Int32) -> Int32).self)
    let setns = unsafeBitCast(setnsCall, to: (@convention(c) (Int32, Int32) -> Int32).self)
    check(unshare(newTime), "unshare")  // for children; its offsets may be set until a process enters it
    let offsets = open("/proc/self/timens_offsets", O_WRONLY)
    check(offsets, "open timens_offsets")
    let text = Array("boottime 7200 0\n".utf8)
    check(Int32(write(offsets, text, text.count)), "write timens_offsets")
    close(offsets)
    let space = open("/proc/self/ns/time_for_children", O_RDONLY)
    check(space, "open time_for_children")
    check(setns(space, newTime), "setns")
    close(space)
}

let loop = try EventLoop()
let monitor = SleepMonitor(loop, bus: nil) { printLine("hook") }
// Due in an hour, so overdue after two hours.
let timer = LoopTimer(loop) {
    printLine("timer")
    loop.stop()
}
timer.arm(at: .now + .seconds(3_600))
let watch = try loop.watch(0, for: .read) { _ in
    var byte: UInt8 = 0
    guard read(0, &byte, 1) == 1 else { return loop.stop() }
    if byte == UInt8(ascii: "j") { enterTimeTwoHoursLater() }
}
let subscriber = Task(executorPreference: loop) {
    var signals = monitor.resumed.causes.makeAsyncIterator()
    printLine("armed")
    while let cause = await signals.next(isolation: nil)?.first {
        printLine("\(cause.first.signal) \(cause.first.detail ?? ""), \(cause.count)")
    }
}
loop.run()
withExtendedLifetime((monitor, timer, watch, subscriber)) {}
