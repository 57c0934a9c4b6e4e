import FreshetJQ

@main
struct Main {
    static func main() {
        if CommandLine.arguments.dropFirst().first == JQHelper.argument { JQHelper.main() }
    }
}
