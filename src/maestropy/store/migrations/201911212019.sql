-- The sample table of the project Maestro was generated from; 202311151859 drops it again.
SELECT 1;
