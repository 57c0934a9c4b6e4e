import FreshetCommands
import Glibc

@main
struct Main {
    static func main() {
        exit(Freshetctl.run(Array(CommandLine.arguments.dropFirst()), .ofThisProcess()).rawValue)
    }
}
