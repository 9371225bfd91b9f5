# cmake -DPLUMB=program -DOUT=folder -P man_pages.cmake: one page for plumb, one per command, and
# the bash completion.  The commands are those that `plumb help` lists.
function(write_output file)
  execute_process(COMMAND ${PLUMB} ${ARGN} OUTPUT_FILE ${OUT}/${file} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "plumb ${ARGN}: ${status}")
  endif()
endfunction()

file(MAKE_DIRECTORY ${OUT})
execute_process(COMMAND ${PLUMB} help OUTPUT_VARIABLE overview)
string(REGEX MATCHALL "\n  [a-z]+ " commands "${overview}")
foreach(command ${commands})
  string(STRIP "${command}" command)
  write_output(plumb-${command}.1 help --man ${command})
endforeach()
write_output(completion.bash completion bash)
write_output(plumb.1 help --man)
