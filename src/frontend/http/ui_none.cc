// In place of the generated ui_files.cc, if the build has no dashboard.
#include "frontend/http/ui.h"

namespace tocsin::http {

std::span<const UiFile> UiFiles() { return {}; }

}  // namespace tocsin::http
