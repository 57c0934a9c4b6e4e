import FreshetEventLoop
import Glibc

@main
struct Main {
    static func main() {
        guard let loop = try? LoopExecutors.install() else { return }
        actor A { var n = 0; func bump() -> Int { n += 1; return n } }
        Task {
            let a = A()
            print("on loop", loop.isCurrent)
            await withTaskGroup(of: Void.self) { g in
                for _ in 0..<3 {
                    g.addTask {
                        _ = await a.bump(); try? await Task.sleep(for: .milliseconds(50)); _ = await a.bump()
                    }
                }
            }
            print(await a.bump(), loop.isCurrent)
            await MainActor.run { print("main", loop.isCurrent) }
            try? await loop.clock.sleep(for: .milliseconds(20))
            let p = WorkerPool()
            print(await p.run { getpid() != 0 }, p.threadCount)
            let c = try? ChildProcess(
                loop, .init(path: "/bin/sh", arguments: ["-c", "exit 3"]), input: 0, output: 1, error: 2)
            print(await c?.wait() as Any)
            let dir = try? String(contentsOf: "/proc/self/status")
            try? await Task.sleep(for: .seconds(12))
            _ = dir
            loop.stop()
        }
        loop.run()
    }
}
extension String { init(contentsOf: String) throws { self = "" } }
