# tocsin_ui_files(VARIABLE)   the source file that holds the dashboard's files: made from web/ by node, or an empty one
option(TOCSIN_UI "build the dashboard (web/) into the server; this needs node and npm" ON)

function(tocsin_ui_files variable)
  if(NOT TOCSIN_UI)
    set(${variable} ${PROJECT_SOURCE_DIR}/src/frontend/http/ui_none.cc PARENT_SCOPE)
    return()
  endif()
  find_program(NODE NAMES node nodejs)
  if(NOT NODE)
    message(FATAL_ERROR "The dashboard is built with node, which is not installed. Install nodejs and npm, or configure "
      "with -DTOCSIN_UI=OFF for a server without the dashboard.")
  endif()
  set(web ${PROJECT_SOURCE_DIR}/web)
  file(GLOB sources CONFIGURE_DEPENDS LIST_DIRECTORIES false ${web}/*)
  file(GLOB_RECURSE more CONFIGURE_DEPENDS ${web}/src/* ${web}/public/*)  # not all: node_modules has thousands
  list(APPEND sources ${more})
  list(FILTER sources EXCLUDE REGEX "\\.test\\.ts$")
  set(dist ${CMAKE_BINARY_DIR}/web/dist)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/ui_files.cc)
  add_custom_command(OUTPUT ${file}
    COMMAND ${PROJECT_SOURCE_DIR}/tools/web_packages.sh
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${dist}
    COMMAND ${NODE} ${web}/build.mjs --out ${dist}
    COMMAND ${NODE} ${PROJECT_SOURCE_DIR}/tools/embed_ui.mjs ${dist} ${file}
    DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/tools/embed_ui.mjs ${PROJECT_SOURCE_DIR}/tools/web_packages.sh
    COMMENT "Building the dashboard" VERBATIM)
  set(${variable} ${file} PARENT_SCOPE)
endfunction()
