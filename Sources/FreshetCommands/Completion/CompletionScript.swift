/// The completion scripts of the shells. A script only calls freshetctl, so that a new version needs no new script.
enum CompletionScript {
    static let bash = #"""
        # Completion of freshetctl(1) for bash. It calls freshetctl, which knows its verbs and options, and gets names
        # from the daemon.
        _freshetctl() {
            local line
            COMPREPLY=()
            while IFS= read -r line; do
                COMPREPLY+=("$line")
            done < <("$1" __complete bash "${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
            case ${COMPREPLY[0]-} in
            :files)
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -- "$2")
                ;;
            :directories)
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -d -- "$2")
                ;;
            *=)
                # The value belongs to the same word.
                [ "${#COMPREPLY[@]}" -ne 1 ] || compopt -o nospace
                ;;
            esac
        }
        complete -F _freshetctl freshetctl

        """#

    static let zsh = #"""
        #compdef freshetctl
        # Completion of freshetctl(1) for zsh. It calls freshetctl, which knows its verbs and options, and gets names
        # from the daemon.
        _freshetctl() {
            local line value note
            local -a lines names open
            lines=("${(@f)$(${(Q)words[1]} __complete zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
            case ${lines[1]} in
            '') return 1 ;;
            :files) _files && return ;;
            :directories) _files -/ && return ;;
            esac
            for line in "${lines[@]}"; do
                value=${line%%$'\t'*}
                note=${line#$value}
                note=${note#$'\t'}
                # A colon ends the word for _describe.
                value=${value//:/\\:}
                if [[ $value == *= ]]; then open+=("$value${note:+:$note}"); else names+=("$value${note:+:$note}"); fi
            done
            local found=1
            (( ! ${#names} )) || { _describe -V 'freshetctl' names && found=0 }
            (( ! ${#open} )) || { _describe -V 'freshetctl' open -S '' && found=0 }
            return found
        }
        if [ "$funcstack[1]" = _freshetctl ]; then
            _freshetctl "$@"
        else
            compdef _freshetctl freshetctl
        fi

        """#

    static let fish = #"""
        # Completion of freshetctl(1) for fish. It calls freshetctl, which knows its verbs and options, and gets names
        # from the daemon.
        function __freshetctl_complete
            set -l words (commandline -opc)
            set -l current (commandline -ct)
            set -l lines ($words[1] __complete fish -- $words[2..-1] "$current" 2>/dev/null)
            switch "$lines[1]"
                case :files
                    __fish_complete_path "$current"
                case :directories
                    __fish_complete_directories "$current"
                case '*'
                    string join \n -- $lines
            end
        end
        complete -c freshetctl -f -k -a '(__freshetctl_complete)'

        """#
}
