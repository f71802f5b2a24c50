"""The completion scripts of bash, zsh and fish: each asks `maestro __complete` and shows the answer.

A line of the answer is a candidate, a tab and its description; the line `:files` asks for file names.
"""

from collections.abc import Mapping

FILES = ":files"
"""The line that asks the shell for file names."""

_BASH = r"""# bash completion of maestro; `maestro completion --help` says where to put it
_maestro() {
    local answer word description current="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    answer=$("${COMP_WORDS[0]}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null) || return 0
    while IFS=$'\t' read -r word description; do
        if [[ $word == :files ]]; then
            compopt -o filenames 2> /dev/null
            [[ $current == "=" ]] && current=""
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
        elif [[ -n $word ]]; then
            COMPREPLY+=("$word")
        fi
    done <<< "$answer"
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2> /dev/null
    fi
    return 0
}
complete -F _maestro maestro
"""

_ZSH = r"""#compdef maestro
# zsh completion of maestro; `maestro completion --help` says where to put it
_maestro() {
    local line
    local -a complete open
    for line in "${(@f)$("${words[1]}" __complete zsh "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
        if [[ $line == :files ]]; then
            # The value of --flag=value is completed behind the equals sign.
            if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi
            _files
        elif [[ -n $line ]]; then
            line="${line//:/\\:}"
            if [[ ${line%%$'\t'*} == *= ]]; then open+=("${line/$'\t'/:}"); else complete+=("${line/$'\t'/:}"); fi
        fi
    done
    (( $#complete )) && _describe -t maestro 'maestro' complete
    (( $#open )) && _describe -t maestro 'maestro' open -S ''
    return 0
}
if [ "$funcstack[1]" = "_maestro" ]; then
    _maestro "$@"
else
    compdef _maestro maestro
fi
"""

_FISH = r"""# fish completion of maestro; `maestro completion --help` says where to put it
function __maestro_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete fish $words[2..-1] "$current" 2> /dev/null)
        if test "$line" = ":files"
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete -c maestro -f -a '(__maestro_complete)'
"""

SCRIPTS: Mapping[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
