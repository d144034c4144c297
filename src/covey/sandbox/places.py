"""Where systems and homes keep things: tables, and nothing else. A name is seen from the home unless it is absolute."""

from __future__ import annotations

from typing import NamedTuple

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/snap"),
    *("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/run/current-system"),
    *("/var/lib/dpkg", "/var/lib/rpm", "/var/lib/gems", "/var/lib/ca-certificates", "/var/cache/fontconfig"),
)
"""Programs, libraries, and what they were installed with."""

KERNEL = ("/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/block", "/sys/class/net")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
TERMINALS = ("/dev/shm", "/dev/pts", "/dev/ptmx")  # noqa: S108 - to be allowed, not used
RESOLVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
"""They are links into /run on many systems."""

SETTINGS = tuple(
    f"/etc/{name}"
    for name in (
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "nsswitch.conf"),
        *("passwd", "group", "hosts", "host.conf", "gai.conf", "services", "protocols", "networks", "hostname"),
        *("localtime", "timezone", "locale.alias", "locale.conf", "default/locale", "os-release", "lsb-release"),
        *("debian_version", "redhat-release", "mime.types", "magic", "magic.mime", "terminfo", "inputrc"),
        *("profile", "profile.d", "bash.bashrc", "bashrc", "environment", "gitconfig", "gitattributes"),
        *("ssl/certs", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "pki/tls/certs", "pki/ca-trust"),
        *("pki/tls/openssl.cnf", "crypto-policies", "python3", "perl", "fonts", "xdg", "manpath.config", "groff"),
        *("vim", "xattr.conf", "wgetrc", "pip.conf", "npmrc", "static", "papersize"),
    )
)
"""What of /etc a program that only looks may need. None of it is a secret on an ordinary system."""

SETTINGS_PATTERNS = ("/etc/java-*", "/etc/python3.*", "/etc/llvm*")
SECRETS_PATTERNS = ("/etc/ssh/ssh_host_*_key",)

SECRETS = tuple(
    f"/etc/{name}"
    for name in (
        *("shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "sudoers.d", "ssl/private", "pki/tls/private"),
        *("krb5.keytab", "NetworkManager/system-connections", "wireguard", "openvpn", "ppp", "ipsec.secrets"),
        *("docker", "kubernetes", "rancher", "letsencrypt", "security/opasswd", "apt/auth.conf", "apt/auth.conf.d"),
        *("cni", "crypttab", "exports", "samba", "postgresql", "mysql", "credstore", "credstore.encrypted"),
    )
)
"""What of /etc no build needs. Most of it only root can read, but the server may be root."""

CREDENTIALS = (
    *(".ssh", ".gnupg", ".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli"),
    *(".aws", ".azure", ".config/gcloud", ".config/doctl", ".kube", ".docker", ".oci", ".boto", ".s3cfg"),
    *(".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".config/pypoetry/auth.toml", ".gem/credentials"),
    *(".config/hub", ".config/rclone", ".config/op", ".terraform.d", ".vault-token", ".password-store", ".pgpass"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".cache/huggingface/token", ".config/sops", ".my.cnf"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird"),
    *(".bash_history", ".zsh_history", ".python_history", ".claude", ".codex", ".config/opencode"),
)

AGENT_VARIABLES = ("SSH_AUTH_SOCK",)
"""They name sockets of those who keep keys."""

TOOL_SETTINGS = (
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".config/yarn", ".config/pnpm", ".bunfig.toml", ".config/configstore"),
    *(".config/pip", ".pip", ".config/uv", ".config/pypoetry/config.toml", ".config/pdm", ".condarc", ".config/hatch"),
    *(".cargo/config", ".cargo/config.toml", ".cargo/env", ".config/go", ".config/ccache", ".config/matplotlib"),
    *(".m2/settings.xml", ".gradle/gradle.properties", ".gradle/init.gradle", ".gradle/init.d", ".gradle/jdks"),
    *(".bundle/config", ".gemrc", ".curlrc", ".wgetrc", ".config/fontconfig", ".fonts", ".local/share/fonts"),
    *(".config/nix", ".nuget/NuGet", ".config/NuGet", ".editorconfig", ".config/mise", ".tool-versions"),
)
"""What builds read of the home. Package managers keep tokens for their registries in some of these."""

CERTIFICATE_VARIABLES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("GIT_SSL_CAINFO", "PIP_CERT", "PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG", "CARGO_HTTP_CAINFO"),
)

TOOLCHAINS = (
    *(".cargo/bin", ".rustup", ".pyenv", ".rbenv", ".nodenv", ".jenv", ".nvm", ".fnm", ".local/share/fnm", ".volta"),
    *(
        ".asdf",
        ".local/share/mise",
        ".sdkman",
        ".bun/bin",
        ".deno/bin",
        "go/bin",
        ".ghcup",
        ".opam",
        ".elan",
        ".juliaup",
    ),
    *(
        ".local/bin",
        ".local/lib",
        ".local/share/uv",
        ".local/share/pipx",
        ".local/pipx",
        ".local/share/pnpm",
        ".dotnet",
    ),
    *(
        "miniconda3",
        "anaconda3",
        "miniforge3",
        "mambaforge",
        ".rye",
        ".proto",
        ".npm-global",
        ".krew/bin",
        ".nix-profile",
    ),
)
"""Programs that users install in their homes."""


TOOLCHAIN_VARIABLES = (
    *("RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "SDKMAN_DIR", "GOROOT", "JAVA_HOME", "RBENV_ROOT"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "DOTNET_ROOT", "ANDROID_HOME", "FNM_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR"),
)


class Cache(NamedTuple):
    """What builds keep between runs, and would fail or be slow without."""

    programs: tuple[str, ...]
    """Who keeps it: it is made if one of them is installed."""
    variable: str
    """The variable that names the directory in `base`'s place; may be empty."""
    base: str
    """From the home, or from the directory of caches if it begins with `$`."""
    below: tuple[str, ...] = ("",)
    """What of it may be written. The rest of it may be configuration, or programs."""


CACHES = (
    Cache(("pip", "pip3"), "PIP_CACHE_DIR", "$pip"),
    Cache(("uv",), "UV_CACHE_DIR", "$uv"),
    Cache(("poetry",), "POETRY_CACHE_DIR", "$pypoetry"),
    Cache(("npm",), "npm_config_cache", ".npm"),
    Cache(("yarn",), "YARN_CACHE_FOLDER", "$yarn"),
    Cache(("pnpm",), "PNPM_HOME", ".local/share/pnpm", ("store",)),
    Cache(("pnpm",), "", "$pnpm"),
    Cache(("corepack", "node"), "COREPACK_HOME", "$node/corepack"),
    Cache(("npm",), "", "$node-gyp"),
    Cache(("bun",), "BUN_INSTALL", ".bun", ("install/cache",)),
    Cache(("deno",), "DENO_DIR", "$deno"),
    Cache(("cargo",), "CARGO_HOME", ".cargo", ("registry", "git", ".package-cache", ".global-cache")),
    Cache(("go",), "GOCACHE", "$go-build"),
    Cache(("go",), "GOPATH", "go", ("pkg",)),
    Cache(("golangci-lint",), "", "$golangci-lint"),
    Cache(
        ("gradle", "java"),
        "GRADLE_USER_HOME",
        ".gradle",
        ("caches", "wrapper", "daemon", "native", "notifications", "workers", ".tmp"),
    ),
    Cache(("mvn", "java"), "", ".m2", ("repository", "wrapper")),
    Cache(("ccache",), "CCACHE_DIR", "$ccache"),
    Cache(("sccache",), "SCCACHE_DIR", "$sccache"),
    Cache(("dotnet",), "NUGET_PACKAGES", ".nuget/packages"),
    Cache(("composer",), "COMPOSER_CACHE_DIR", "$composer"),
    Cache(("zig",), "ZIG_GLOBAL_CACHE_DIR", "$zig"),
    Cache(("stack",), "STACK_ROOT", ".stack"),
    Cache(("cabal",), "", "$cabal"),
    Cache(("bazel", "bazelisk"), "", "$bazel"),
    Cache(("bazelisk",), "", "$bazelisk"),
    Cache(("pre-commit",), "PRE_COMMIT_HOME", "$pre-commit"),
    Cache((), "PLAYWRIGHT_BROWSERS_PATH", "$ms-playwright"),
    Cache((), "PUPPETEER_CACHE_DIR", "$puppeteer"),
    Cache((), "CYPRESS_CACHE_FOLDER", "$Cypress"),
    Cache((), "", "$fontconfig"),
    Cache((), "", "$mesa_shader_cache"),
    Cache((), "", "$black"),
    Cache((), "", "$pylint"),
    Cache((), "", "$matplotlib"),
    Cache((), "", "$typescript"),
)

WORKSPACE_FILES = ("covey.toml", ".covey")
"""Covey's own in a workspace: what stands there may count as configuration."""
