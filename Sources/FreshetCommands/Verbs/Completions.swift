import ArgumentParser

struct Completions: Verb {
    static let configuration = CommandConfiguration(
        commandName: "completions",
        abstract: "Print the completion script for a shell.",
        discussion: """
            Packages install the scripts. At each Tab a script calls freshetctl, which knows the verbs and options and \
            gets the names of pipelines and signals, parameters and generations from the daemon.

            Examples:
              freshetctl completions bash >/etc/bash_completion.d/freshetctl
              freshetctl completions zsh >/usr/local/share/zsh/site-functions/_freshetctl
              freshetctl completions fish >/etc/fish/completions/freshetctl.fish
              source <(freshetctl completions bash)
            """)

    /// The shells with a script.
    enum Shell: String, CaseIterable, ExpressibleByArgument {
        case bash, zsh, fish

        var script: String {
            switch self {
            case .bash: CompletionScript.bash
            case .zsh: CompletionScript.zsh
            case .fish: CompletionScript.fish
            }
        }
    }

    @Argument(help: "bash, zsh or fish.") var shell: Shell
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        guard session.context.outputBytes(Array(shell.script.utf8)[...]) else { throw CommandFailure(.failure) }
    }
}
