# Manual pages, made by the program from its own tables, and what `cmake --install` copies.
include(GNUInstallDirs)

set(PLUMB_MAN ${PROJECT_BINARY_DIR}/man)
add_custom_command(OUTPUT ${PLUMB_MAN}/plumb.1
  COMMAND ${CMAKE_COMMAND} "-DPLUMB=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:plumb_cli>"
    -DOUT=${PLUMB_MAN}
    -P ${CMAKE_CURRENT_LIST_DIR}/man_pages.cmake
  DEPENDS plumb_cli ${CMAKE_CURRENT_LIST_DIR}/man_pages.cmake VERBATIM)
add_custom_target(plumb_man ALL DEPENDS ${PLUMB_MAN}/plumb.1)

# The demo model lies where src/cli/model_lookup.c looks for it.
install(TARGETS plumb_cli plumb)
install(FILES include/plumb.h TYPE INCLUDE)
install(DIRECTORY data/demo-model DESTINATION ${CMAKE_INSTALL_DATADIR}/plumb)
install(DIRECTORY ${PLUMB_MAN}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
install(FILES ${PLUMB_MAN}/completion.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME plumb)
